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
	g := together{place: none}
	var quotas []int
	for i := range a.asked {
		it := &a.asked[i]
		var err error
		switch {
		case it.Limit == nil:
		case a.options.Quota || it.Quota:
			quotas = append(quotas, i)
		case it.hits == 0 || it.negative || it.Shadow && it.Policy != "":
			err = a.add(i, cell.Take)
		default:
			err = g.join(a, i)
		}
		if err != nil {
			return err
		}
	}
	if n := len(g.Calls); n > store.MaxLimits {
		return a.refuse(fmt.Sprintf("with all or none, a request has at most %d limits", store.MaxLimits))
	}
	g.end(a)
	first := len(a.requests)
	for _, i := range quotas {
		if err := a.add(i, cell.Take); err != nil { // before anything is taken
			return err
		}
	}
	if err := a.send(0, first); err != nil || len(quotas) == 0 {
		return err
	}
	if g.denied || g.place != none && a.requests[g.place].Taken.Limited {
		a.onlyLook(first)
	}
	return a.send(first, len(a.requests))
}

// onlyLook makes requests from a place on take nothing.
func (a *answer) onlyLook(first int) {
	for i := range a.requests[first:] {
		if r := &a.requests[first+i]; r.Cost > 0 {
			r.Mode = cell.Peek
		}
	}
}

// together is the request of all limits that pass together.
type together struct {
	store.TakeRequest
	place  int  // in the requests; none: it has no call
	denied bool // by a limit of 0, which the store does not know
}

// end puts the request into its place.
func (g *together) end(a *answer) {
	if g.place == none {
		return
	}
	if g.denied {
		g.Mode = cell.Peek
	}
	g.Cost = commonCost(g.Calls)
	a.requests[g.place] = g.TakeRequest
}

// join adds the calls of a descriptor.
func (g *together) join(a *answer, i int) error {
	it := &a.asked[i]
	calls, err := a.callsOf(i, false)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		g.denied = g.denied || !it.Shadow
		return nil
	}
	if it.Shadow {
		limit := *calls[0].Limit
		limit.Shadow = true
		calls[0].Limit = &limit
	}
	if g.place == none {
		g.place = len(a.requests)
		a.requests, a.of = append(a.requests, store.TakeRequest{}), append(a.of, group)
	}
	for j := range calls {
		calls[j].Own, calls[j].Cost = true, it.hits
	}
	it.request, it.call, it.calls = g.place, len(g.Calls), len(calls)
	g.Calls = append(g.Calls, calls...)
	return nil
}

// commonCost is the cost of a request. Nearly always its calls take as much: then none has a cost of its own, which the store decides on
// faster.
func commonCost(calls []store.Call) int64 {
	hits := calls[0].Cost
	for i := range calls {
		if calls[i].Cost != hits {
			return 1
		}
	}
	for i := range calls {
		calls[i].Own = false
	}
	return hits
}
