package resp

import (
	"celld/cell"
	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
)

// gather puts the calls at the start of data into the batch, as far as they go together, and returns their bytes. Where a command
// follows that does not belong to them, it may have been read: then s.scratch.args has it, and next is its length.
func (s *Session) gather(data []byte, limits wire.Limits) (used, next int) {
	fs, b := s.scratch.forms, s.batch()
	for used < len(data) && b.n < maxBatch {
		f := fs.last.next
		key, n := f.match(data[used:], limits.MaxBulk)
		if n == 0 {
			f = fs.other(f)
			key, n = f.match(data[used:], limits.MaxBulk)
		}
		if n == 0 || f.stale(s) {
			var args [][]byte
			if args, n = wire.Whole(data[used:], s.scratch.args, limits); n == 0 {
				return used, 0
			}
			s.scratch.args = args
			if f = fs.find(s, data[used:used+n], args); f == nil {
				return used, n
			}
			key = args[1]
		}
		if !b.fits(f) {
			return used, 0
		}
		fs.met(f)
		b.add(f, key)
		used += n
	}
	return used, 0
}

// readFunc reads a call that the limiter decides into a form. It returns the text of an error, or "".
type readFunc func(s *Session, f *form, args [][]byte) (text string)

// reader reads the calls of a row, or is nil.
func reader(row *command.Row) readFunc {
	switch row.Name {
	case "cl.throttle":
		return readThrottle
	case "gcra":
		return readGCRA
	case "cl.take":
		return readTake
	case "cl.mtake":
		return readMultiTake
	}
	return nil
}

// decide is the handler of rows that read calls: it asks for one.
func decide(s *Session, args [][]byte) {
	f, row := &s.scratch.single, s.call.Row
	f.reset(row)
	if text := reader(row)(s, f, args); text != "" {
		s.call.Error("%s", text)
		return
	}
	var b *batch
	if f.call.hasTerms {
		if f.call.terms.Bound && !s.mayBind(args) {
			s.call.Error(errBound)
			return
		}
		b = newLone(f.call.terms.Mode == store.Wait)
	} else {
		b = s.batch()
	}
	if row.Keys.Counted {
		b.addPairs(f, args[2:])
	} else {
		b.add(f, args[1])
	}
	if b.lone {
		b.own(f)
	}
	s.ask(b)
}

// askBatch asks for what was gathered.
func (s *Session) askBatch() {
	b := s.scratch.batch
	s.client.LastCommand.Store(b.row.ACL)
	s.scratch.stats.Count(b.row, int64(b.n), s.scratch.lane)
	s.ask(b)
}

// batch is the batch of the session, which is empty.
func (s *Session) batch() *batch {
	if s.scratch.batch == nil {
		s.scratch.batch = newBatch()
	}
	return s.scratch.batch
}

// ask has the limiter decide on the batch, and answers its calls. Where the answer comes later, the session waits for it.
func (s *Session) ask(b *batch) {
	limiter, waker := s.srv.limiter, store.Waker(b)
	if s.tx.running { // where nothing may wait; what would has been refused
		limiter, waker = s.store(), nil
	}
	if b.waits && s.srv.stopping.refusing.Load() {
		waker = nil
	}
	a := s.access()
	b.tr, b.may = s.client.Conn, a.May
	if s.srv.answersLater && !b.lone {
		b.keepKeys()
	}
	s.scratch.asked = true
	b.hashed = limiter == store.Limiter(s.srv.store)
	var done bool
	if len(b.takes) > 0 {
		done = limiter.TakeBatch(b.takes, a, waker)
	} else {
		done = limiter.ThrottleBatch(b.throttles, a, waker)
	}
	if !done && !b.answered.Swap(false) {
		s.suspend(b)
		return
	}
	s.answer(b)
}

// answer writes the replies of a batch that is decided.
func (s *Session) answer(b *batch) {
	mark := len(s.call.Out)
	if len(b.takes) > 0 {
		s.answerTakes(b)
	} else {
		s.answerThrottles(b)
	}
	if s.srv.synchronous && b.changes() {
		s.noteWrites(mark, b.n)
	}
	b.reset()
}

// changes is false where all calls have only looked (PEEK).
func (b *batch) changes() bool {
	for i := range b.takes {
		if b.takes[i].Mode != cell.Peek {
			return true
		}
	}
	return len(b.takes) == 0
}

func (s *Session) answerThrottles(b *batch) {
	n := s.scratch.decided.In(s.srv.decisions.Literal(cell.GCRA), s.scratch.lane)
	var limited uint64 // a bit for each of maxBatch calls
	for i := range b.throttles {
		r, f := &b.throttles[i], b.forms[i]
		if r.Err != nil {
			start := len(s.call.Out)
			s.call.Error("%s", throttleError(r.Err))
			s.failed(b.row, s.call.Out[start:])
			continue
		}
		if r.Quantity > 0 {
			n.Throttle(&r.Decision, r.Bucket.Capacity())
			if r.Decision.Limited {
				limited |= 1 << i
			}
		}
		if len(f.allowed) > 0 {
			s.call.Out = f.appendReply(s.call.Out, &r.Decision)
		} else {
			s.replyDecision(&r.Decision, 1e9)
		}
	}
	if limited != 0 {
		s.countDeniedThrottles(b, limited)
	}
}

// hashOf returns the hash of a key by the server's store. That has computed it already where it was asked for the batch.
func (s *Session) hashOf(b *batch, key []byte, hash uint64) uint64 {
	if b.hashed {
		return hash
	}
	return s.srv.store.Hash(key)
}

func (s *Session) answerTakes(b *batch) {
	allowed := decisions.TakeAllowed
	if b.row.Name == "cl.throttle" {
		allowed = decisions.ThrottleAllowed
	}
	for i := range b.takes {
		r, f := &b.takes[i], b.forms[i]
		if r.Err != nil {
			start := len(s.call.Out)
			s.call.Fail(r.Err)
			s.failed(b.row, s.call.Out[start:])
			continue
		}
		if r.Mode != cell.Peek && r.Cost > 0 {
			s.countTake(b, f, r, allowed)
		}
		if r.Terms != nil {
			s.bind(r, b.may)
			if b.waits && !r.Taken.Limited {
				s.srv.stats.Waits.Note(b.waitedNS(s.nowNS))
			}
		}
		f.reply(s, f, r)
	}
	if len(s.scratch.denied) > 0 {
		s.countDenied()
	}
}
