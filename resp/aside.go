package resp

import (
	"sync/atomic"
)

// aside has work done by a goroutine. Work returns what replies.
func (srv *service) aside(work func() func(*Session), done func(func(*Session))) {
	go func() {
		reply := func(s *Session) {
			s.call.Error(errInternal)
			s.end = afterReply
		}
		defer func() { done(reply) }()
		defer srv.survive("aside")
		reply = work()
	}()
}

// goAside does the running command's work in a goroutine while the session waits. It is the last that a handler does.
func (s *Session) goAside(args [][]byte, work func(args [][]byte) func() func(*Session)) *visit {
	v := &visit{row: s.call.Row, args: s.detach(args), startNS: s.srv.clock(), tr: s.client.Conn, visiting: new(atomic.Int64), cancel: func() {}}
	s.srv.aside(work(v.args), func(answer func(*Session)) {
		v.answer = answer
		v.Wake()
	})
	s.waits = v
	return v
}
