package resp

import (
	"context"
	"math"
	"sync/atomic"

	"celld/resp/command"
)

// aside has work done by a goroutine. Work returns what replies.
func (srv *Server) aside(work func() func(*Session), done func(func(*Session))) {
	go func() {
		reply := func(s *Session) {
			s.replyError(errInternal)
			s.end = afterReply
		}
		defer func() { done(reply) }()
		defer srv.survive("aside")
		reply = work()
	}()
}

// listAside runs a handler that only reads, and writes a long reply, in a goroutine while its session waits. The handler gets
// another session, which has the protocol to reply in, the time and nothing else. CL.STATS of 65,536 policies takes 110 ms, CL.POLICY
// LIST 25 and CLIENT LIST of 10,000 clients 30, in which the event loop would serve nobody. One list is made at a time: so that many do
// not take all CPUs, nor the output limit each.
func listAside(run func(*Session, [][]byte)) farFunc {
	return func(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
		s.countDecisions()
		s.srv.aside(s.listed(args, run), done)
	}
}

// listed is the work of listAside.
func (s *Session) listed(args [][]byte, run func(*Session, [][]byte)) (work func() func(*Session)) {
	srv, w := s.srv, &Session{srv: s.srv, nowNS: s.nowNS}
	w.call = &command.Call{Reply: command.Reply{RESP3: s.call.RESP3}, Host: (*host)(w), NowNS: s.nowNS}
	return func() func(*Session) {
		srv.listing.Lock()
		defer srv.listing.Unlock()
		run(w, args)
		return func(s *Session) {
			size := len(w.call.Out)
			if w.end != open { // the handler has given up
				size = math.MaxInt
			}
			if !s.overOutput(size) {
				s.call.Out = append(s.call.Out, w.call.Out...)
			}
		}
	}
}

// mayGoAside reports whether the running command may have its work done by a goroutine: not in a transaction, nor in a script, nor for an
// engine, whose views belong to one session.
func (s *Session) mayGoAside() bool { return !s.tx.running && s.scratch.visit == nil }

// goAside does the running command's work in a goroutine while the session waits. It is the last that a handler does.
func (s *Session) goAside(args [][]byte, work func(args [][]byte) func() func(*Session)) *visit {
	v := &visit{row: s.client.lastCommand.Load(), args: s.detach(args), startNS: s.srv.clock(), tr: s.tr, visiting: new(atomic.Int64), cancel: func() {}}
	s.srv.aside(work(v.args), func(answer func(*Session)) {
		v.answer = answer
		v.Wake()
	})
	s.waits = v
	return v
}
