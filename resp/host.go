package resp

import (
	"context"

	"celld/resp/command"
	"celld/store"
)

// host is a session as commands see it.
type host Session

func (h *host) session() *Session { return (*Session)(h) }

func (h *host) Keys() command.Keys                        { return h.session().store() }
func (h *host) Access() store.Access                      { return h.session().access() }
func (h *host) Inside() bool                              { return h.tx.running }
func (h *host) MayGoAside() bool                          { return h.session().mayGoAside() }
func (h *host) Once(effect func())                        { h.session().once(effect) }
func (h *host) Alone(do func())                           { h.session().alone(do) }
func (h *host) Did(args, bytes int)                       { h.scratch.slice.did(args, bytes) }
func (h *host) CountDecisions()                           { h.session().countDecisions() }
func (h *host) MostOutput() int                           { return int(h.srv.cfg.OutputBufferLimit.Get()) }
func (h *host) OverOutput(bytes int) bool                 { return h.session().overOutput(bytes) }
func (h *host) TypeOf(key []byte, kind store.Kind) string { return h.session().typeOf(key, kind) }

// Log tells operators what the client has done.
func (h *host) Log(text string, about ...any) {
	h.srv.log.Info(text, append(about, "client", h.client.addr)...)
}

// Hangup closes the connection when the replies have been sent.
func (h *host) Hangup() { h.end = afterReply }

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
func (h *host) GoAside(begin func(args [][]byte) command.Work) {
	s := h.session()
	s.goAside(s.call.Args, func(args [][]byte) func() func(*Session) {
		work := begin(args)
		return func() func(*Session) {
			s.srv.listing.Lock()
			defer s.srv.listing.Unlock()
			reply := work()
			return func(s *Session) {
				s.call.NowNS = s.nowNS
				reply(s.call)
			}
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

// farFunc asks the engine, and has done called once, from any goroutine, with what replies. It does not block. ctx ends when the client has gone.
type farFunc func(ctx context.Context, s *Session, args [][]byte, done func(reply func(*Session)))

// onSession is a handler that still reaches its session.
func onSession(run func(*Session, [][]byte)) func(*command.Call) {
	return func(c *command.Call) { run(sessionOf(c), c.Args) }
}

// farOnSession is the same for what answers later.
func farOnSession(far farFunc) command.Far {
	return func(ctx context.Context, c *command.Call, done func(func(*command.Call))) {
		far(ctx, sessionOf(c), c.Args, func(reply func(*Session)) {
			done(func(c *command.Call) { reply(sessionOf(c)) })
		})
	}
}

func sessionOf(c *command.Call) *Session { return c.Host.(*host).session() }
