package resp

import (
	"celld/resp/command"
	"celld/store"
)

// host is a session as commands see it. own.go has what they see of its connection.
type host Session

func (h *host) session() *Session { return (*Session)(h) }

func (h *host) Keys() command.Keys        { return h.session().store() }
func (h *host) Access() store.Access      { return h.session().access() }
func (h *host) Inside() bool              { return h.tx.running }
func (h *host) Once(effect func())        { h.session().once(effect) }
func (h *host) Did(args, bytes int)       { h.scratch.slice.did(args, bytes) }
func (h *host) CountDecisions()           { h.session().countDecisions() }
func (h *host) MostOutput() int           { return int(h.srv.cfg.OutputBufferLimit.Get()) }
func (h *host) OverOutput(bytes int) bool { return h.session().overOutput(bytes) }

// Alone calls do while no other connection's command runs. It may change the rights of its own user.
func (h *host) Alone(do func()) {
	if h.session().alone(do); h.client.ID != 0 {
		h.session().checkRights()
	}
}

// Connection is the client's, which has an id.
func (h *host) Connection() command.Connection {
	if h.client.ID == 0 {
		return nil
	}
	return h
}

// MayGoAside reports whether the running command may have its work done by a goroutine: not in a transaction, nor in a script, nor for an
// engine, whose views belong to one session.
func (h *host) MayGoAside() bool { return !h.tx.running && h.scratch.visit == nil }

// TypeOf is a key's type, as TYPE tells it.
func (h *host) TypeOf(key []byte, kind store.Kind) string {
	if v := h.scratch.visit; v != nil {
		if name, foreign := v.tx.Foreign(key); foreign {
			return name
		}
	}
	return kind.String()
}

// InSteps has a handler's work done by step.
func (h *host) InSteps(step command.Step) {
	s := h.session()
	row := s.call.Row
	s.inSteps(s.call.Args, func(s *Session, args [][]byte) (more bool) {
		s.call.Row, s.call.Args, s.call.NowNS = row, args, s.nowNS
		return step(s.call)
	})
}

// GoAside has the command's work done by a goroutine.
func (h *host) GoAside(long bool, begin func(args [][]byte) command.Work) {
	srv := h.srv
	h.session().goAside(h.call.Args, func(args [][]byte) command.Work {
		work := begin(args)
		if !long {
			return work
		}
		return func() func(*command.Call) {
			srv.listing.Lock()
			defer srv.listing.Unlock()
			return work()
		}
	})
}

// Shared calls do while no transaction or script runs alone.
func (h *host) Shared(a store.Access, do func()) {
	lane := h.srv.execution.lane(a.Lane)
	lane.RLock()
	defer lane.RUnlock()
	do()
}

// LeaseEnds notes when a lease that ends with the connection ends otherwise.
func (h *host) LeaseEnds(id, endNS int64) {
	s := h.session()
	l, bound := s.bound[id]
	switch {
	case !bound:
	case endNS == 0:
		s.unbind(id)
	default:
		l.endNS = endNS
		s.bound[id] = l
	}
}

// ErrorText is the text of what the store has refused. A key to which a lease leads, and to which the user has no right, is refused
// and logged as one that the command names.
func (h *host) ErrorText(err error) string { return h.session().errorText(err) }

// onSession is a handler that still reaches its session.
func onSession(run func(*Session, [][]byte)) func(*command.Call) {
	return func(c *command.Call) { run(sessionOf(c), c.Args) }
}

func sessionOf(c *command.Call) *Session { return c.Host.(*host).session() }
