package resp

import (
	"celld/store"
	"celld/store/waiting"
)

// suspend has the session wait for the limiter's answer. It serves nothing meanwhile, and its transport does not read, so that
// what it holds of a pipeline is bounded. It goes on when the limiter's Wake makes the transport call Serve.
//
// The scratch goes back to the others, as a thousand sessions may wait: a call that waits takes 1 KB, with its part of the batch.
func (s *Session) suspend(b *batch) {
	for i, f := range b.forms[:b.n] {
		switch {
		case i > 0 && f == b.last:
			b.forms[i] = b.forms[i-1]
		default:
			b.forms[i], b.last = f.answers(), f
		}
	}
	b.last, b.muted = nil, false
	s.waits = b
	if !b.lone {
		s.scratch.batch = nil
	}
	if b.waits {
		b.sinceNS = s.nowNS
		r := &b.takes[0]
		s.client.Waits.Store(r)
		if s.srv.stopping.refusing.Load() { // its look at the sessions may have been before
			s.srv.port.Leave(r, store.ErrRefused)
		}
	}
}

// suspension is what a session waits for: a batch that the limiter has not answered, or a visit to an engine.
type suspension interface {
	ready() bool       // it can go on
	resume(s *Session) // goes on, and may have the session wait again
	leave(s *Session)  // nobody will read the answer
	abandons() bool    // who closes its half of the connection gives the wait up
}

// resume answers what the session has waited for. Where the session has gone meanwhile, leave has ended the wait.
func (s *Session) resume() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.resume(s)
	}
}

// waitedNS is how long a call has waited that is answered now.
func (b *batch) waitedNS(nowNS int64) int64 {
	if b.sinceNS == 0 {
		return 0
	}
	return max(0, nowNS-b.sinceNS)
}

func (b *batch) ready() bool    { return b.answered.Load() }
func (b *batch) abandons() bool { return b.waits }

func (b *batch) resume(s *Session) {
	s.client.Waits.Store(nil)
	b.answered.Store(false)
	mark := len(s.call.Out)
	s.scratch.mark = mark
	s.answer(b)
	if b.muted {
		s.call.Out = s.call.Out[:mark]
		s.unwrite(mark)
	}
	if s.scratch.batch == nil && !b.lone {
		s.scratch.batch = b
	}
}

// leave ends a wait whose answer nobody will read.
func (s *Session) leave() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.leave(s)
	}
}

// leave: a batch without WAIT or BIND is the limiter's alone from now on. A call with WAIT leaves its queue, and what it has been granted
// already flows back. So does a lease that was to end with the session.
func (b *batch) leave(s *Session) {
	s.client.Waits.Store(nil)
	if !b.waits && !(b.lone && b.takes[0].Terms.Bound) || b.waits && s.srv.port.Leave(&b.takes[0], nil) {
		return
	}
	b.srv = s.srv
	b.gone.Store(true)
	if b.answered.Load() && b.gone.CompareAndSwap(true, false) { // else Wake does
		b.giveBack()
	}
}

// giveBack gives back what a call was granted whose session has gone.
func (b *batch) giveBack() {
	if r := &b.takes[0]; waiting.GivesBack(r) {
		waiting.GiveBack(r, b.waits, b.srv.port, store.Access{NowNS: b.srv.clock(), May: b.may})
	}
}

// refuseWaiting has all calls that wait answered as refused, and all that would from now on.
func (srv *service) refuseWaiting() {
	srv.stopping.refusing.Store(true)
	for _, c := range srv.clients.All() {
		c.Unblock(srv.port, store.ErrRefused)
	}
}
