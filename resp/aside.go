package resp

import (
	"sync/atomic"

	"celld/resp/command"
)

// goAside does the running command's work in a goroutine while the session waits. It is the last that a handler does.
func goAside(s *Session, args [][]byte, work func(args [][]byte) command.Work) *visit {
	v := &visit{row: s.call.Row, args: s.detach(args), startNS: s.srv.clock(), tr: s.client.Conn, visiting: new(atomic.Int64)}
	v.cancel = func() {}
	v.answer = func(*command.Call) { // if the work panics
		s.call.Error(errInternal)
		s.end = afterReply
	}
	do := work(v.args)
	go func() {
		defer v.Wake()
		defer s.srv.survive("aside")
		v.answer = do()
	}()
	s.waits = v
	return v
}
