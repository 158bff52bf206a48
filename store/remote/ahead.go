package remote

import (
	"slices"

	"celld/store"
	"celld/store/remote/ahead"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// takenAhead is a Take that is a change, and that units may decide that come while it waits.
type takenAhead struct {
	*view.Change
	store   *Store
	request *store.TakeRequest
	access  store.Access
	grant   *ahead.Grant // units that it asks for, too; nil: none
	units   bool         // units have decided it
}

// enqueue sends the change after the other operations of its key.
func (t *takenAhead) enqueue(c *view.Change) {
	t.Change = c
	if t.grant != nil {
		grants(c, t.grant)
	}
	t.store.tatCache.forget(c.Key)
	t.store.queues.Enqueue(t)
}

// grants lets a change ask for units, too.
func grants(c *view.Change, g *ahead.Grant) {
	decide, done := c.Decide, c.Done
	c.Decide = func(v *view.View) {
		decide(v)
		g.Decide(v)
	}
	c.Done = func(err error) {
		g.Done(err)
		done(err)
	}
}

// GoesWith is queue.Operation's, as Send.
func (t *takenAhead) GoesWith(first queue.Operation) bool {
	_, is := first.(*takenAhead)
	return is
}

func (t *takenAhead) Send(b *queue.Group) {
	t.store.useUnits(b)
	if len(b.Operations) == 0 {
		b.Next()
		return
	}
	t.store.views.Decide(b)
}

// byUnits decides by units, and reports whether it has.
func (t *takenAhead) byUnits() bool {
	if t.grant == nil {
		t.units, _ = t.store.takeAhead(t.request, t.access, true)
	}
	return t.units
}

// changesOtherwise gives back what is held of the keys of a Take that units do not decide, so that it finds what the keys have by then. One
// that only looks finds what is held as used.
func (s *Store) changesOtherwise(r *store.TakeRequest) {
	if !s.ahead.On() || ahead.Suits(r) || r.Cost >= 0 && !r.Takes() {
		return
	}
	for i := range r.Calls {
		s.ahead.GiveBackOf(r.Calls[i].Key)
	}
}

// renew sends a request for units of a key, for no call.
func (s *Store) renew(g *ahead.Grant) {
	key, name, bucket, limits := g.Ask()
	o := &call{Common: queue.Common{Key: name, Deadline: s.deadline()}, store: s, pending: newPending(1, nobody{}), grant: g, renews: true}
	switch {
	case limits == nil:
		o.throttle = &store.Request{Key: key, Bucket: bucket}
	case len(limits) == 1 && ahead.HasScript(limits[0].Limit):
		o.take = &store.TakeRequest{Calls: slices.Clone(limits)} // each decision is written there, and other calls read the holding's
		o.field = s.fieldOf(&limits[0])
	}
	if o.throttle == nil && o.field == "" || !o.exact() {
		c := s.views.NewChange([]string{name}, o.Deadline, g.Decide, g.Done)
		s.enqueueChange(c)
		return
	}
	s.queues.Enqueue(o)
}

// nobody waits for what no call has asked for.
type nobody struct{}

func (nobody) Wake() {}
