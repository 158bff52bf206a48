package envoy

import (
	"fmt"

	"celld/cell"
	"celld/store"
)

// decideTogether takes from all limits of a request, or from none. Quotas do not deny by themselves: each is taken by itself where the
// others pass, and only looked at where they do not. What a descriptor gives back, or only looks at, and policies with shadow_mode stand
// apart, too.
func (a *answer) decideTogether() error {
	together := store.TakeRequest{}
	denied, place := false, none
	var quotas []int
	for i := range a.asked {
		it := &a.asked[i]
		switch {
		case it.Limit == nil:
			continue
		case a.options.Quota || it.Quota:
			quotas = append(quotas, i)
			continue
		case it.hits == 0 || it.negative || it.Shadow && it.Policy != "":
			if err := a.add(i, cell.Take); err != nil {
				return err
			}
			continue
		}
		calls, err := a.callsOf(i, false)
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			denied = denied || !it.Shadow
			continue
		}
		if it.Shadow {
			limit := *calls[0].Limit
			limit.Shadow = true
			calls[0].Limit = &limit
		}
		if place == none {
			place = len(a.requests)
			a.requests, a.of = append(a.requests, store.TakeRequest{}), append(a.of, group)
		}
		for j := range calls {
			calls[j].Times = it.hits
		}
		it.request, it.call, it.calls = place, len(together.Calls), len(calls)
		together.Calls = append(together.Calls, calls...)
	}
	if n := len(together.Calls); n > store.MaxLimits {
		return a.refuse(fmt.Sprintf("with all or none, a request has at most %d limits", store.MaxLimits))
	}
	if place != none {
		if denied {
			together.Mode = cell.Peek
		}
		together.Cost = commonCost(together.Calls)
		a.requests[place] = together
	}
	first := len(a.requests)
	for _, i := range quotas {
		if err := a.add(i, cell.Take); err != nil { // before anything is taken
			return err
		}
	}
	if err := a.send(0, first); err != nil || len(quotas) == 0 {
		return err
	}
	if denied || place != none && a.requests[place].Taken.Limited {
		for i := range a.requests[first:] {
			if r := &a.requests[first+i]; r.Cost > 0 {
				r.Mode = cell.Peek
			}
		}
	}
	return a.send(first, len(a.requests))
}

// commonCost is the cost that all calls take as often as their Times say. Nearly always they take as much: then it is that, once, which the
// store decides on faster.
func commonCost(calls []store.Call) int64 {
	hits := calls[0].Times
	for i := range calls {
		if calls[i].Times != hits {
			return 1
		}
	}
	for i := range calls {
		calls[i].Times = 0
	}
	return hits
}
