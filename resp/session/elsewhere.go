package session

import (
	"context"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/transport"
)

// elsewhere is work that a session waits for, and that is done elsewhere: by a goroutine, as it takes long, or by an engine that is asked
// about more than some keys.
type elsewhere struct {
	conn   transport.Conn
	done   atomic.Bool
	then   func(s *Session)   // goes on. Set before it is done
	cancel context.CancelFunc // the client has gone; nil: the work goes on
	asks   bool               // an engine
}

// finish is called once, from any goroutine.
func (w *elsewhere) finish(then func(s *Session)) {
	w.then = then
	w.done.Store(true)
	w.conn.Wake()
}

func (w *elsewhere) ready() bool       { return w.done.Load() }
func (w *elsewhere) resume(s *Session) { w.then(s) }
func (w *elsewhere) abandons() bool    { return false }

func (w *elsewhere) leave(*Session) {
	if w.cancel != nil {
		w.cancel()
	}
}

// offload does work in a goroutine, while the session waits. What it returns goes on. It is the last that a handler does.
func (s *Session) offload(work func() (then func(s *Session))) {
	w := &elsewhere{conn: s.client.Conn}
	go func() {
		then := func(s *Session) { // if the work panics
			s.call.Error(door.ErrInternal)
			s.end = afterReply
		}
		defer func() { w.finish(then) }()
		defer s.srv.Survive("offloaded work")
		then = work()
	}()
	s.waits = w
}

// answered replies to a command that began then and has been answered elsewhere, and accounts for it.
func (f inFlight) answered(startNS int64, reply func(*command.Call)) func(s *Session) {
	return func(s *Session) {
		mark, resumedNS := len(s.call.Out), s.srv.Clock()
		s.scratch.mark = mark
		s.call.NowNS = s.nowNS
		reply(s.call)
		s.scratch.stats.TookNS(s.scratch.slice.ReadClock() - resumedNS)
		f.timed(s.srv.Clock()-startNS, true)
		f.replied(mark)
		f.called(mark)
	}
}

// Later waits for an engine, unless the store is in the process, which answers at once. Where too much waits, the call is refused.
func (h *host) Later(begin func(ctx context.Context, done func(reply func(*command.Call)))) {
	s, srv := h.session(), h.srv
	if srv.Port.InProcess() || h.tx.running {
		begin(context.Background(), func(reply func(*command.Call)) { reply(s.call) })
		return
	}
	f := inFlight{s, s.call.Row, s.detach(s.call.Args)}
	bytes := int64(0)
	for _, arg := range f.args {
		bytes += int64(len(arg)) + queuedBytes
	}
	if err := srv.Held.Hold(bytes); err != nil {
		s.call.Fail(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &elsewhere{conn: s.client.Conn, cancel: cancel, asks: true}
	startNS := srv.Clock()
	s.call.Args = f.args
	var answer func(*command.Call)
	begin(ctx, func(reply func(*command.Call)) {
		cancel()
		srv.Held.Let(bytes)
		answer = reply
		w.finish(f.answered(startNS, reply))
	})
	if w.ready() { // what it knows by itself
		answer(s.call)
		return
	}
	s.waits = w
}

// Offload does the command's work in a goroutine.
func (h *host) Offload(long bool, begin func(args [][]byte) command.Work) {
	s, srv := h.session(), h.srv
	f, startNS := inFlight{s, s.call.Row, s.detach(s.call.Args)}, srv.Clock()
	work := begin(f.args)
	s.offload(func() func(*Session) {
		if long {
			srv.listing.Lock()
			defer srv.listing.Unlock()
		}
		return f.answered(startNS, work())
	})
}
