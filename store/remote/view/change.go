package view

import (
	"time"

	"celld/store"
	"celld/store/remote/queue"
)

// Change is an operation that a table of this process decides, into which its keys are read.
type Change struct {
	queue.Common
	Keys  []string // on the engine; the first names the queue
	views *Views

	// Decide decides. After a conflict it is called again: what it set before is void. It is called from any goroutine.
	Decide func(v *View)

	// Done is called once, from any goroutine, after Decide's outcome is stored. It must not block. The error is a *link.DownError, or one
	// of the engine's, and nothing was decided then.
	Done func(err error)
}

// NewChange returns a change of keys.
func (s *Views) NewChange(keys []string, deadline time.Time, decide func(v *View), done func(err error)) *Change {
	return &Change{queue.Common{Key: keys[0], Deadline: deadline}, keys, s, decide, done}
}

// Answer is queue.Operation's, as GoesWith and Send.
func (c *Change) Answer(err error) { c.Done(err) }

func (c *Change) GoesWith(first queue.Operation) bool {
	_, changes := first.(*Change)
	return changes
}

func (c *Change) Send(b *queue.Group) {
	c.views.Decide(b)
}

// AsChange is for Views.Decide.
func (c *Change) AsChange() *Change { return c }

// changing is changes of one key that are decided together.
type changing struct {
	group   *queue.Group
	changes []*Change // one for each operation of the group
	wrong   []error   // for each: why its keys do not allow it
	view    *View
}

// Decide decides on the operations of a group as changes, in their order, by one view. Each has a method AsChange. It ends the group, from
// any goroutine.
func (s *Views) Decide(b *queue.Group) {
	n := len(b.Operations)
	c := &changing{group: b, changes: make([]*Change, n), wrong: make([]error, n)}
	for i, o := range b.Operations {
		c.changes[i] = o.(interface{ AsChange() *Change }).AsChange()
	}
	c.view = s.newView(c.changes[0].Deadline)
	for _, one := range c.changes {
		if s.Link.CheckHashSlot(one.Keys) == nil {
			c.view.addAll(one.Keys)
		}
	}
	if len(c.view.keys) == 0 || c.view.loadCached() || c.view.loadAbsent() {
		c.decide()
		return
	}
	c.view.ticket.early = true
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
	for i, one := range c.changes {
		if c.wrong[i] = v.views.Link.CheckHashSlot(one.Keys); c.wrong[i] == nil && v.foreignAmong(one.Keys) {
			c.wrong[i] = store.ErrWrongType
		}
		if c.wrong[i] == nil {
			one.Decide(v)
			v.miss(one.Keys)
		}
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
	if err == nil {
		c.view.cache()
	}
	c.view.Close()
	for i, o := range c.group.Operations {
		if err != nil {
			c.group.Answer(o, err)
		} else {
			c.group.Answer(o, c.wrong[i])
		}
	}
	c.group.Next()
}
