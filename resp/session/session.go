package session

import (
	"celld/resp/bound"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/wire"
	"celld/store"
)

// flushAt is how many reply bytes are gathered before they are handed to the transport in the middle of a batch.
const flushAt = 64 << 10

// Session is the state machine of one connection. It turns bytes into reply bytes and does no I/O. The transport, the tests and
// the fuzzers all drive it by calling Serve.
type Session struct {
	srv    *Service
	client client.Client // what other connections see of this one (CLIENT LIST)

	in      []byte // what has arrived and is not served
	reader  wire.FrameReader
	scratch *scratch      // lent for one batch
	call    *command.Call // the scratch's
	waits   suspension    // nothing else is served until that has an answer; nil: nothing
	nowNS   int64         // read once per batch

	// The small fields stand together, which keeps a Session within 512 bytes. Go's next size class is 576.
	end      ending
	gate     gate.Word
	unserved bool // in may hold whole commands, so the transport calls Serve(nil) before it reads more

	tx transaction

	bound bound.Leases
	round *round // used where replies wait for the disk; nil: nothing has been sent yet
}

// ending says whether and how a connection ends.
type ending int32

const (
	open       ending = iota
	afterReply        // close when the replies have been sent
	atOnce            // close without sending the replies: the peer does not read them, or has exceeded a limit
)

// suspension is what a session waits for: a batch that the limiter has not answered, or a key transaction to an engine.
type suspension interface {
	ready() bool       // it can go on
	resume(s *Session) // goes on, and may make the session wait again
	leave(s *Session)  // nobody will read the answer
	abandons() bool    // who closes its half of the connection gives the wait up
}

// Serve answers data, which may hold any part of any number of commands, and sends the replies. It does not keep data. It
// reports whether whole commands may be left. If so, the transport calls Serve(nil) before it reads more.
//
// A panic in a handler ends this connection alone. The panic is logged with its stack and counted, and the peer gets an error.
func (s *Session) Serve(data []byte) (more bool) {
	defer func() {
		if cause := recover(); cause != nil {
			s.srv.Panic(cause, "command", "client", s.client.Addr, "command", s.client.Command())
			s.broken()
			more = false
		}
	}()
	if s.end != open {
		return false
	}
	startNS := s.srv.Clock()
	s.nowNS = startNS
	s.beginTurn(len(data))
	read := int64(len(data))
	if len(s.in) > 0 {
		s.in = append(s.in, data...)
		data = s.in
	}
	s.borrow()
	s.scratch.slice.Begin(s.srv.Clock, startNS, s.client.Conn.RoundNS())
	s.srv.Stats.InputBytes.Add(s.scratch.lane, read)
	s.call.Out = s.client.DrainPushed(s.call.Out)
	data = s.answerTurn(data)
	if s.scratch.endNS-startNS > sliceNS { // a session that is served for long is not idle
		s.client.LastNS.Store(s.scratch.endNS)
	}
	s.giveBack()
	return s.endTurn(data)
}

// beginTurn notes whether the peer is alive, and ends a connection that was killed or was idle for too long.
func (s *Session) beginTurn(bytes int) {
	if s.client.Killed.Load() {
		s.end = atOnce
	}
	switch {
	case bytes > 0, s.waits != nil: // a session that waits is not idle
		s.client.LastNS.Store(s.nowNS)
	case !s.unserved && s.Overdue():
		s.end = atOnce
	}
	s.unserved = false
}

// answerTurn answers commands until none is left, the session waits, or its slice is over. It returns the rest of data.
func (s *Session) answerTurn(data []byte) (rest []byte) {
	for pending := 0; ; s.nowNS = s.srv.Clock() {
		var again bool
		data, again = s.run(data)
		if len(s.call.Out) > 0 && s.end != atOnce {
			pending = s.send()
		}
		s.call.Out = s.call.Out[:0]
		if pending > int(s.srv.Config.OutputBufferLimit.Get()) {
			s.srv.Log.WarnLimited("client does not read its replies, closed", "client", s.client.Addr, "pending_bytes", pending)
			s.srv.Stats.OutputLimitCloses.Add(1)
			s.end = atOnce
		}
		if !again || s.end != open {
			return data
		}
		if s.scratch.slice.Ended() {
			s.unserved = true
			return data
		}
	}
}

// send hands the replies so far to the transport. It returns how many bytes the peer has not read.
func (s *Session) send() (pending int) {
	out := s.call.Out
	s.srv.Stats.OutputBytes.Add(s.scratch.lane, int64(len(out)))
	pending = s.client.Conn.Send(out)
	s.noteSent(len(out))
	s.call.Out, s.scratch.mark = out[:0], 0
	return pending
}

// endTurn closes a connection that ends, and keeps what another has left. It reports whether the session goes on by itself.
func (s *Session) endTurn(rest []byte) (more bool) {
	if s.end != open {
		s.in, s.unserved = nil, false
		s.leave()
		s.client.Conn.Close(s.end == atOnce)
		return false
	}
	_, goesOn := s.waits.(*stepwise)
	s.unserved = s.unserved || goesOn
	s.keep(rest)
	if s.waits != nil && !goesOn {
		s.client.Conn.Pause(s.waits.abandons()) // who closes its half gives a WAIT up, as Redis's BLPOP
	}
	return s.unserved
}

// broken answers a command that has panicked with an error, after the replies to the commands before it, and ends the
// connection. It does not give the scratch back, because the panic may have left it in any state.
func (s *Session) broken() {
	var out []byte
	if s.scratch != nil {
		out = s.call.Out[:min(s.scratch.mark, len(s.call.Out))]
		s.round.unwrite(len(out))
	}
	if !s.gate.Silent() {
		out = wire.AppendError(out, door.ErrInternal)
	}
	s.scratch, s.call, s.in = nil, nil, nil
	s.leave()
	s.end, s.unserved = afterReply, false
	s.tx.discard()
	s.client.Conn.Send(out)
	s.noteSent(len(out))
	s.client.Conn.Close(false)
}

// Overdue says whether the connection must be closed as idle, and counts it if so. Any goroutine may call it.
func (s *Session) Overdue() bool {
	overdue := s.srv.overdue(&s.client, s.srv.Clock())
	if overdue {
		s.srv.Stats.IdleCloses.Add(1)
	}
	return overdue
}

// Unsent takes the number of reply bytes that the peer has not read, whenever it changes. When it falls, the peer is alive.
func (s *Session) Unsent(bytes int) {
	if before := s.client.Unsent.Swap(int64(bytes)); int64(bytes) < before {
		s.client.LastNS.Store(s.srv.Clock())
	}
}

// overdue says whether the connection has been idle for longer than --timeout. A connection that is woken calls it again, because
// only its own goroutine knows whether it is being served.
func (srv *Service) overdue(c *client.Client, nowNS int64) bool {
	timeoutNS := srv.Config.Timeout.Get() * 1e9
	return timeoutNS > 0 && c.Idle(nowNS, timeoutNS)
}

// WakeIdle wakes connections that seem idle. Each checks whether it is, and closes itself.
func (srv *Service) WakeIdle() {
	if srv.Config.Timeout.Get() == 0 {
		return
	}
	nowNS := srv.Clock()
	for _, c := range srv.Clients.All() {
		if srv.overdue(c, nowNS) {
			c.Conn.Wake()
		}
	}
}

// borrow and giveBack bracket a batch, so that an idle connection holds no scratch.
func (s *Session) borrow() {
	s.scratch = s.srv.newScratch()
	s.call = &s.scratch.call
	s.call.Host, s.call.RESP3, s.call.NowNS = (*host)(s), s.client.RESP3.Load(), s.nowNS
}

func (s *Session) giveBack() {
	s.srv.put(s.scratch)
	s.scratch, s.call = nil, nil
}

// run answers commands from data until no whole command is left, or until the replies are enough for one send. It returns the
// rest, and whether the rest may hold another command.
func (s *Session) run(data []byte) (rest []byte, more bool) {
	srv := s.srv
	if s.waits != nil && (s.end != open || !s.waits.ready()) {
		return data, false
	}
	lane := srv.Execution.Lane(s.scratch.lane)
	if !lane.TryRLock() { // EXEC locks it for writing, so a transaction runs alone
		lane.RLock()
		s.nowNS = srv.Clock() // the wait counts for no command
	}
	defer lane.RUnlock()
	s.scratch.stats.Begin(s.nowNS)
	defer func() { s.scratch.endNS = s.finishBatch() }()
	s.checkRights()
	s.resume()
	for s.end == open && s.waits == nil && len(data) > 0 {
		if len(s.call.Out) >= flushAt || s.scratch.slice.IsOver() {
			return data, true
		}
		s.scratch.mark = len(s.call.Out)
		next := 0
		if s.ungated() && s.reader.Idle() {
			var used int
			used, next = s.decideTogether(data)
			if data = data[used:]; used > 0 && (next == 0 || s.waits != nil) {
				continue
			}
		}
		n, found := s.serveCommand(data, next)
		if !found {
			break
		}
		data = data[n:]
	}
	return data, false
}

// ungated says that nobody needs to look at single commands, except for the user's rights: see allowed.
func (s *Session) ungated() bool { return s.gate&^gate.Rights|s.srv.Gate.Load() == 0 }

// resume answers what the session has waited for. Where the session has gone meanwhile, leave has ended the wait.
func (s *Session) resume() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.resume(s)
	}
}

// leave ends a wait whose answer nobody will read.
func (s *Session) leave() {
	if w := s.waits; w != nil {
		s.waits = nil
		w.leave(s)
	}
}

// decideTogether decides the calls at the start of data, and returns their bytes. Where the command behind them has been read, next is its
// length, and scratch.args has it.
func (s *Session) decideTogether(data []byte) (used, next int) {
	limits, b := s.srv.frameLimits(!s.mustAuth()), s.scratch.emptyBatch()
	used, next = s.scratch.decider.Gather(&b.Batch, data, &s.scratch.args, limits)
	if s.gate.Has(gate.Rights) {
		used, next = s.allowed(data, used, next, limits)
	}
	if used > 0 {
		s.scratch.slice.Did(b.Work(), used)
		s.client.LastCommand.Store(b.Row().ACL)
		s.scratch.stats.Count(b.Row(), int64(b.Len()), s.scratch.lane)
		b.ask(s)
		s.scratch.mark = len(s.call.Out)
	}
	return used, next
}

// serveCommand runs the command at the start of data, and returns its bytes: none where it has read a part of it. A command of a known
// length is in scratch.args. It returns false where data has no whole command, or none at all.
func (s *Session) serveCommand(data []byte, length int) (n int, found bool) {
	args, n := s.scratch.args, length
	if n == 0 {
		var err error
		if args, n, err = s.reader.Next(data, args, s.srv.frameLimits(!s.mustAuth())); err != nil {
			s.refuseBytes(err)
			return 0, false
		}
	}
	switch {
	case n == 0 && s.reader.Gathering():
		s.scratch.slice.Did(lookEvery, 0)
		return 0, true
	case n == 0:
		return 0, false
	case len(args) == 0:
		s.gate.Set(gate.SkipNext, false) // CLIENT REPLY SKIP skips an empty command, as in Redis
		s.gate.EndCaching(nil)
	default:
		s.scratch.args = args
		mark := len(s.call.Out)
		s.dispatch(args)
		s.scratch.slice.Did(len(args), n+max(0, len(s.call.Out)-mark))
	}
	return n, true
}

// frameLimits returns the bounds of one frame.
func (srv *Service) frameLimits(authed bool) wire.Limits {
	return wire.Limits{MaxArgs: int(srv.Config.MaxMultibulkLen.Get()), MaxBulk: int(srv.Config.MaxBulkLen.Get()), Authed: authed}
}

// refuseBytes answers bytes that are no command, and ends the connection.
func (s *Session) refuseBytes(err error) {
	s.srv.Stats.ProtocolErrors.Add(1)
	s.srv.Stats.Rejected(nil, err.Error())
	if !s.gate.Has(gate.ReplyOff | gate.SkipNext) { // they count as the next command
		s.call.Error("%s", err)
	}
	s.end = afterReply
}

// keep stores unserved commands, or the start of an unfinished command until the rest arrives. It ends the connection when the
// unfinished command and the transaction's queue together exceed the limit.
func (s *Session) keep(rest []byte) {
	if held := len(rest) + s.tx.bytes; !s.unserved && s.waits == nil && held > int(s.srv.Config.QueryBufferLimit.Get()) {
		s.srv.Log.WarnLimited("client is over its query buffer limit, closed", "client", s.client.Addr, "bytes", held)
		s.srv.Stats.QueryLimitCloses.Add(1)
		s.end, s.in = atOnce, nil
		s.client.Conn.Close(true)
		return
	}
	switch {
	case len(rest) == 0:
		s.in = nil
	case len(s.in) >= len(rest) && &s.in[len(s.in)-len(rest)] == &rest[0]:
		if len(rest) < len(s.in) {
			s.in = append(s.in[:0], rest...)
		}
	default:
		s.in = append([]byte(nil), rest...)
	}
	s.client.QueryBytes.Store(int64(len(s.in)))
	s.client.TxBytes.Store(int64(s.tx.bytes))
}

// overOutput ends a connection when a single reply exceeds the output limit, before the whole reply is in memory. Commands whose
// reply can grow large call it as they write.
func (s *Session) overOutput(bytes int) bool {
	if bytes <= int(s.srv.Config.OutputBufferLimit.Get()) {
		return false
	}
	s.end = atOnce
	if s.client.Conn != nil { // else the session that waits for this list says it
		s.srv.Log.WarnLimited("reply is over the output limit, closed", "client", s.client.Addr, "command", s.client.Command())
		s.srv.Stats.OutputLimitCloses.Add(1)
	}
	return true
}

// store returns the keys that the running command works on: its key transaction's, or the server's.
func (s *Session) store() store.Keys {
	if v := s.scratch.keyTx; v != nil {
		return v.tx.Keys()
	}
	return s.srv.Keys
}

// Closed is called by the transport, once, when the connection is gone.
func (s *Session) Closed() {
	s.ended()
	s.srv.Clients.Forget(&s.client)
}

// ended ends what the session waits for and holds.
func (s *Session) ended() {
	s.end = atOnce
	s.leave()
	s.bound.Release(&s.srv.Later)
	s.tx.discard()
	if s.round != nil { // the transport does not call Confirm after this
		s.round.decided.Settle(0, nil)
	}
}

// inRound returns the session's round. A connection that has never waited for the disk has none yet.
func (s *Session) inRound() *round {
	if s.round == nil {
		s.round = &round{}
	}
	return s.round
}

// noteSent counts bytes passed to the transport.
func (s *Session) noteSent(bytes int) {
	if s.srv.Synchronous {
		s.inRound().sent += bytes
	}
}

// countDecisions adds the batch's decisions so far to the totals, or to the session's round where replies wait for the disk. Those of a
// key transaction count when it is stored, as it may have to run again.
func (s *Session) countDecisions() {
	d := &s.scratch.decider.Decided
	switch {
	case s.scratch.keyTx != nil:
		return
	case s.srv.Synchronous:
		s.inRound().decided.AddAll(d, s.scratch.lane)
		d.Clear()
	default:
		d.Settle(s.scratch.lane, nil)
	}
}

// Wrote reports whether the session has run a write since the last Confirm, even one without a reply.
func (s *Session) Wrote() bool { return s.round != nil && s.round.changed }

// Confirm takes all bytes that the session has sent since the last Confirm, and the error of writing its changes to the disk. It
// returns the bytes to pass on. After an error, these answer each write with that error in place of its reply.
func (s *Session) Confirm(sent []byte, err error) []byte {
	if len(sent) > 0 {
		s.client.LastNS.Store(s.srv.Clock()) // waiting for the disk is not idle time
	}
	return s.inRound().confirm(sent, err)
}
