package waits

import (
	"slices"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/remote/view"
)

// Take decides on a Take as a change, which enqueue sends, and then calls done. A call that would have to wait is denied.
func (w *Waits) Take(r *store.TakeRequest, a store.Access, deadline time.Time, enqueue func(c *view.Change), done func()) {
	var keys []string
	for i := range r.Calls {
		c := &r.Calls[i]
		c.Key = slices.Clone(c.Key)
		if r.Cost < 0 && !r.Look || !w.Policies.HasRules() || c.Rule(w.Policies, a.NowNS) == nil { // rules do not apply to CL.GIVE
			keys = append(keys, w.Prefix+string(c.Key))
		}
	}
	if len(keys) == 0 { // rules decide
		v := w.Views.Blank(a.NowNS)
		w.Decide(v, r, a)
		v.Close()
		done()
		return
	}
	enqueue(w.Views.NewChange(keys, deadline, func(v *view.View) { w.Decide(v, r, a) }, func(err error) {
		if err != nil {
			w.Failure.Take(r, err, a)
		}
		done()
	}))
}

// Decide decides on a Take by a view's table, behind those who wait.
func (w *Waits) Decide(v *view.View, r *store.TakeRequest, a store.Access) {
	if w.refuseBehind(v, r, a) {
		return
	}
	r.Taken, r.Err = v.Take(r.Calls, r.TakeOptions, v.At(a))
	if r.Look && r.Err == nil {
		look := *r
		look.Cost, look.Mode = 0, cell.Peek
		w.refuseBehind(v, &look, a)
	}
}

// refuseBehind refuses a plain call that comes behind those who wait here. It returns false if there are none.
func (w *Waits) refuseBehind(v *view.View, r *store.TakeRequest, a store.Access) bool {
	if w.room.Callers() == 0 || r.Mode == cell.Force || r.Cost < 0 || r.Terms != nil &&
		(r.Terms.Mode == store.Reserve || r.Terms.Name != "") { // a repeat takes nothing
		return false
	}
	wait := w.behind(v, r, a)
	if wait != 0 {
		refuse(v, r, a, wait)
	}
	return wait != 0
}
