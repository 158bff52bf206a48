package remote

import (
	"slices"
	"time"

	"celld/cell"
	"celld/store"
)

// changing is changes of one key that are decided together.
type changing struct {
	store *Store
	queue *queue
	ops   []*operation
	wrong []error // of each operation that its keys do not allow
	view  *View
}

// changes decides on changes of one key, in their order, by one view. It ends in s.answer for each and s.next(q), from any goroutine.
func (s *Store) changes(q *queue, ops []*operation) {
	c := &changing{store: s, queue: q, view: s.newView(ops[0].deadline)}
	for _, o := range ops {
		if err := s.link.OneSlot(o.change.keys); err != nil {
			s.answer(o, err)
			continue
		}
		c.ops = append(c.ops, o)
	}
	if len(c.ops) == 0 {
		c.view.Close()
		s.next(q)
		return
	}
	c.wrong = make([]error, len(c.ops))
	for _, o := range c.ops {
		c.view.addAll(o.change.keys)
	}
	if c.view.guess() {
		c.decide()
		return
	}
	c.view.turn.early = true
	c.view.open(c.read)
}

func (c *changing) read() {
	if c.view.Err != nil {
		c.end(c.view.Err)
		return
	}
	c.decide()
}

func (c *changing) decide() {
	v := c.view
	v.Table()
	for i, o := range c.ops {
		if c.wrong[i] = nil; v.foreignAmong(o.change.keys) {
			c.wrong[i] = store.ErrWrongType
			continue
		}
		o.change.decide(v)
		v.miss(o.change.keys)
	}
	if v.commit(c.stored) {
		c.stored()
	}
}

func (c *changing) stored() {
	if c.view.Conflict() {
		c.decide()
		return
	}
	c.end(c.view.Err)
}

func (c *changing) end(err error) {
	if keys := c.view.keys; err == nil && len(keys) == 1 {
		c.store.versionsOf(c.view.engineKeys(), func(s *versions, key string) { s.noteContent(key, keys[0].read, c.view.NowNS, c.view.guessed) })
	}
	c.view.Close()
	for i, o := range c.ops {
		if err != nil {
			c.store.answer(o, err)
		} else {
			c.store.answer(o, c.wrong[i])
		}
	}
	c.store.next(c.queue)
}

// takeChange decides on a Take as a change.
func (s *Store) takeChange(r *store.TakeRequest, a store.Access, deadline time.Time, b *batch) {
	var keys []string
	for i := range r.Calls {
		c := &r.Calls[i]
		c.Key = slices.Clone(c.Key)
		if r.Cost < 0 && !r.Look || !s.policies.HasRules() || s.policies.Rule(c.Key, a.NowNS) == nil { // no rule decides on CL.GIVE
			keys = append(keys, s.options.Prefix+string(c.Key))
		}
	}
	if len(keys) == 0 { // rules decide
		v := s.newView(deadline)
		v.NowNS = a.NowNS
		v.Table()
		v.takeOne(r, a)
		v.Close()
		b.answered()
		return
	}
	s.ask(&operation{key: keys[0], access: a, deadline: deadline, change: &change{
		keys:   keys,
		decide: func(v *View) { v.takeOne(r, a) },
		done: func(err error) {
			if err != nil {
				r.Taken, r.Err = store.Taken{}, err
				s.failure.Take(r, err, a)
			}
			b.answered()
		},
	}})
}

// takeOne decides on a Take by the view's table. A call that would have to wait is denied.
func (v *View) takeOne(r *store.TakeRequest, a store.Access) {
	if v.takeBehind(r, a) {
		return
	}
	one := [1]store.TakeRequest{*r}
	a.NowNS = v.NowNS
	v.TakeBatch(one[:], a, nil)
	r.Taken, r.Err = one[0].Taken, one[0].Err
	if r.Look && r.Err == nil {
		look := *r
		look.Cost, look.Mode = 0, cell.Peek
		v.takeBehind(&look, a)
	}
}
