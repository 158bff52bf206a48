package session

import (
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/transport"
	"celld/store"
	"celld/store/waiting"
)

// batch is what a session asks the limiter at once, and what it needs where the answer comes later.
//
// A lone batch is of one call that may wait or hold a lease. It is not used again: the limiter may keep all of it, and so may whoever ends
// the wait.
type batch struct {
	decide.Batch
	srv      *Service // when its session is gone
	tr       transport.Conn
	may      store.Right // of the user who asked
	answered atomic.Bool
	muted    bool // the command is not to be answered
	lone     bool
	waits    bool        // with WAIT
	sinceNS  int64       // when it began to wait
	gone     atomic.Bool // its session has gone before the answer was there
}

// emptyBatch is the batch that the calls without terms of a session have in turn.
func (c *scratch) emptyBatch() *batch {
	if c.batch == nil {
		c.batch = &batch{}
	}
	return c.batch
}

// Decider reads and answers the calls that the limiter decides.
func (h *host) Decider() *decide.Decider { return h.scratch.decider }

// Failed counts a call that the limiter has not decided.
func (h *host) Failed(row *command.Row, reply []byte) { inFlight{h.session(), row, nil}.failed(reply) }

// Decide asks the limiter for a call that has not been gathered.
func (h *host) Decide(c *command.Call, f *decide.Shape) {
	s := h.session()
	b := s.scratch.emptyBatch()
	if terms := f.Terms(); terms != nil {
		if terms.Bound && !s.bound.Room(c) {
			c.Error(errBound)
			return
		}
		s.srv.EndWait(terms)
		b = &batch{lone: true, waits: terms.Mode == store.Wait}
	}
	b.AddCall(f, c.Args)
	b.ask(s)
}

// ask asks the limiter, and answers the calls. Where the answer comes later, the session waits for it.
func (b *batch) ask(s *Session) {
	limiter, waker := s.srv.Limiter, store.Waker(b)
	if s.tx.running { // where nothing may wait; what would has been refused
		limiter, waker = s.store(), nil
	}
	a := (*host)(s).Access()
	b.tr, b.may = s.client.Conn, a.May
	s.scratch.asked = true
	if !s.scratch.decider.Ask(&b.Batch, limiter, a, waker) && !b.answered.Swap(false) {
		b.suspend(s)
		return
	}
	b.answer(s, 0)
}

// answer writes the replies of a batch that is decided, after a wait.
func (b *batch) answer(s *Session, waitedNS int64) {
	mark, calls, writes := len(s.call.Out), b.Len(), s.srv.Synchronous && b.Changes()
	if b.lone && b.Take().Err == nil {
		s.bound.Add(b.Take(), b.may, s.nowNS)
		if b.waits && !b.Take().Taken.Limited {
			s.srv.Stats.Waits.Note(waitedNS)
		}
	}
	s.scratch.decider.Answer(s.call, &b.Batch)
	if writes {
		s.inRound().wrote(mark, len(s.call.Out), calls)
	}
}

// suspend makes the session wait for the limiter's answer. It serves nothing meanwhile, and its transport does not read, so that
// what it holds of a pipeline is bounded. It goes on when the limiter's Wake makes the transport call Serve.
//
// The scratch goes back to the others, as a thousand sessions may wait: a call that waits takes 1 KB, with its part of the batch.
func (b *batch) suspend(s *Session) {
	b.KeepShapes()
	b.muted = false
	s.waits = b
	if !b.lone {
		s.scratch.batch = nil
	}
	if b.waits {
		b.sinceNS = s.nowNS
		s.client.Waits.Store(b.Take())
		if s.srv.Refusing.Load() { // its look at the sessions may have been before
			s.srv.Port.Leave(b.Take(), store.ErrRefused)
		}
	}
}

// Wake is called by the limiter when it has answered.
func (b *batch) Wake() {
	tr := b.tr // when the answer is seen, b may be another's
	b.answered.Store(true)
	if b.lone && b.gone.CompareAndSwap(true, false) {
		b.srv.Later.GiveBack(b.giveBack)
	}
	tr.Wake()
}

func (b *batch) ready() bool    { return b.answered.Load() }
func (b *batch) abandons() bool { return b.waits }

func (b *batch) resume(s *Session) {
	s.client.Waits.Store(nil)
	b.answered.Store(false)
	mark := len(s.call.Out)
	s.scratch.mark = mark
	b.answer(s, max(0, s.nowNS-b.sinceNS))
	if b.muted {
		s.call.Out = s.call.Out[:mark]
		s.round.unwrite(mark)
	}
	if s.scratch.batch == nil && !b.lone {
		s.scratch.batch = b
	}
}

// leave: a batch without WAIT or BIND is the limiter's alone from now on. A call with WAIT leaves its queue, and what it has been granted
// already flows back. So does a lease that was to end with the session.
func (b *batch) leave(s *Session) {
	s.client.Waits.Store(nil)
	if !b.waits && !(b.lone && b.Take().Terms.Bound) || b.waits && s.srv.Port.Leave(b.Take(), nil) {
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
	if r := b.Take(); waiting.GivesBack(r) {
		waiting.GiveBack(r, b.waits, b.srv.Port, store.Access{NowNS: b.srv.Clock(), May: b.may})
	}
}
