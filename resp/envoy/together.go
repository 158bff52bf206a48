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
		case together.Cost != 0 && together.Cost != it.hits:
			return a.refuse("with all or none, the descriptors of a request have equal hits_addend, or 0")
		}
		together.Cost = it.hits
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
		a.requests[place] = together
	}
	if err := a.send(0); err != nil || len(quotas) == 0 {
		return err
	}
	mode := cell.Take
	if denied || place != none && a.requests[place].Taken.Limited {
		mode = cell.Peek
	}
	sent := len(a.requests)
	for _, i := range quotas {
		if err := a.add(i, mode); err != nil {
			return err
		}
	}
	return a.send(sent)
}
