package resp

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"celld/resp/transport"
	"celld/resp/wire"
	"celld/store"
)

// flushAt is how many reply bytes are gathered before they are handed to the transport in the middle of a batch.
const flushAt = 64 << 10

// sliceNS bounds how long one connection's pipeline keeps its event loop: after this, the rest waits for its next turn.
// 5 ms is 20,000 decisions, so that only slow commands in a row (KEYS, a big DEL) ever meet it.
const sliceNS = 5_000_000

// Session is the state machine of one connection: bytes in, reply bytes out, no I/O of its own. The transport, the
// tests and the fuzzers all drive it by Serve.
type Session struct {
	srv    *Server
	tr     transport.Conn
	client client // what other connections see of this one (CLIENT LIST)

	in      []byte // what has arrived and is not served
	reader  wire.FrameReader
	out     []byte
	scratch *scratch // lent for the time of a batch
	waits   *batch   // the limiter has not answered yet: nothing is served
	nowNS   int64    // read once a batch

	// These together, so that all is within 512 bytes: the next larger size that memory comes in is 576.
	end      ending
	gate     gate
	unserved bool // in may hold whole commands: the transport serves them by Serve(nil) before it reads more
	resp3    bool
	noTouch  bool

	tx transaction

	round *round // where replies wait for the disk; nil: nothing was sent yet
}

// ending says whether and how a connection is to end.
type ending int32

const (
	open       ending = iota
	afterReply        // close when the replies have left
	atOnce            // close without the replies: the peer does not read them, or the limits are passed
)

// Serve answers data, which may hold any part of any number of commands, and sends the replies. data is not kept. It
// reports whether whole commands may be left: the transport has them served by Serve(nil) before it reads more.
//
// A panic in a handler ends this connection alone: it is logged with its stack and counted, and the peer gets an error.
func (s *Session) Serve(data []byte) (more bool) {
	defer func() {
		if cause := recover(); cause != nil {
			s.srv.panicked(cause, "command", "client", s.client.addr, "command", s.client.command())
			s.broken()
			more = false
		}
	}()
	if s.end != open {
		return false
	}
	if s.client.killed.Load() {
		s.end = atOnce
	}
	startNS := s.srv.clock()
	s.nowNS = startNS
	switch {
	case len(data) > 0:
		s.client.lastNS.Store(startNS)
		s.srv.stats.inputBytes.Add(int64(len(data)))
	case s.waits != nil: // which is not being idle
		s.client.lastNS.Store(startNS)
	case !s.unserved && s.Overdue():
		s.end = atOnce
	}
	s.unserved = false
	if len(s.in) > 0 {
		s.in = append(s.in, data...)
		data = s.in
	}
	s.borrow()
	s.takePushed()
	for pending := 0; ; s.nowNS = s.srv.clock() {
		var again bool
		data, again = s.run(data)
		if len(s.out) > 0 && s.end != atOnce {
			s.srv.stats.outputBytes.Add(int64(len(s.out)))
			s.scratch.mark = 0
			pending = s.tr.Send(s.out)
			s.noteSent(len(s.out))
		}
		s.out = s.out[:0]
		s.scratch.out = s.out
		if pending > int(s.srv.cfg.outputBufferLimit.Get()) {
			s.srv.warnSeldom("client does not read its replies, closed", "client", s.client.addr, "pending_bytes", pending)
			s.srv.stats.outputLimitCloses.Add(1)
			s.end = atOnce
		}
		if !again || s.end != open {
			break
		}
		if s.srv.clock()-startNS > sliceNS {
			s.unserved = true
			break
		}
	}
	if s.scratch.endNS-startNS > sliceNS { // being served is not being idle
		s.client.lastNS.Store(s.scratch.endNS)
	}
	s.giveBack()
	if s.end != open {
		s.in, s.unserved, s.waits = nil, false, nil
		s.tr.Close(s.end == atOnce)
		return false
	}
	s.keep(data)
	if s.waits != nil {
		s.tr.Pause(false)
	}
	return s.unserved
}

// broken answers a command that has panicked by an error, behind the replies to those before it, and ends the connection.
// What the batch had borrowed is not given back: nobody knows what the panic left in it.
func (s *Session) broken() {
	var out []byte
	if s.scratch != nil {
		out = s.out[:min(s.scratch.mark, len(s.out))]
		s.unwrite(len(out))
	}
	if !s.silent() {
		out = append(out, "-"+errInternal+"\r\n"...)
	}
	s.scratch, s.out, s.in, s.waits = nil, nil, nil, nil
	s.end, s.unserved = afterReply, false
	s.tx.discard()
	s.tr.Send(out)
	s.noteSent(len(out))
	s.tr.Close(false)
}

// Overdue says, from any goroutine, whether the connection is to be closed as idle, and counts it then.
func (s *Session) Overdue() bool {
	overdue := s.overdue(s.srv.clock())
	if overdue {
		s.srv.stats.idleCloses.Add(1)
	}
	return overdue
}

// Unsent is told how many bytes of replies the peer has not taken, whenever that changes. Fewer are a sign of life.
func (s *Session) Unsent(bytes int) {
	if before := s.client.unsent.Swap(int64(bytes)); int64(bytes) < before {
		s.client.lastNS.Store(s.srv.clock())
	}
}

// overdue says whether the connection has been idle for longer than --timeout. A connection that is woken asks this itself,
// as nobody else knows whether it is being served.
func (s *Session) overdue(nowNS int64) bool {
	timeoutNS := s.srv.cfg.timeout.Get() * 1e9
	return timeoutNS > 0 && nowNS-s.client.lastNS.Load() > timeoutNS && !s.client.monitor.Load()
}

// borrow and giveBack bracket a batch: what only a batch needs is not kept by a connection that is idle.
func (s *Session) borrow() {
	s.scratch = s.srv.scratches.get()
	s.out = s.scratch.out
}

func (s *Session) giveBack() {
	s.out = nil
	s.srv.scratches.put(s.scratch)
	s.scratch = nil
}

// run answers commands from data until it is used up, holds no whole command any more, or enough was written for one
// send. It returns what is left, and whether there may be another command in it.
func (s *Session) run(data []byte) (rest []byte, more bool) {
	srv := s.srv
	if s.waits != nil && !s.waits.answered.Load() {
		return data, false
	}
	if !srv.world.TryRLock() { // EXEC takes it for writing, so that a transaction runs alone
		srv.world.RLock()
		s.nowNS = srv.clock() // what was waited for is no command's time
	}
	defer srv.world.RUnlock()
	s.scratch.stats.startNS = s.nowNS
	defer func() { s.scratch.endNS = s.scratch.stats.finish(s) }()
	s.resume()
	for s.end == open && s.waits == nil && len(data) > 0 {
		if len(s.out) >= flushAt || s.scratch.stats.slowNS > sliceNS {
			return data, true
		}
		s.scratch.mark = len(s.out)
		limits := s.frameLimits()
		var args [][]byte
		var n int
		if s.gate|srv.gate.Load() == 0 && s.reader.Idle() {
			var calls int
			if calls, n = s.gather(data, limits); calls > 0 {
				s.askBatch()
				data = data[calls:]
				if n == 0 || s.waits != nil {
					continue
				}
				s.scratch.mark = len(s.out)
			}
			args = s.scratch.args
		}
		var err error
		if n == 0 {
			args, n, err = s.reader.Next(data, s.scratch.args, limits)
		}
		if err != nil {
			srv.stats.protocolErrors.Add(1)
			srv.stats.rejected(nil, err.Error())
			if !s.gate.has(gateReplyOff | gateSkipNext) { // it counts as the next command
				s.replyError("%s", err)
			}
			s.end = afterReply
			return nil, false
		}
		if n == 0 {
			return data, false
		}
		if len(args) == 0 {
			s.gate.set(gateSkipNext, false) // an empty command is the one without a reply, as in Redis
			s.endCaching(nil)
		} else {
			s.scratch.args = args
			s.dispatch(args)
		}
		data = data[n:]
	}
	return data, false
}

// frameLimits are how long a frame may be.
func (s *Session) frameLimits() wire.Limits {
	cfg := s.srv.cfg
	return wire.Limits{MaxArgs: int(cfg.maxMultibulkLen.Get()), MaxBulk: int(cfg.maxBulkLen.Get()), Authed: !s.gate.has(gateAuth)}
}

// silent says that the command that runs has no reply.
func (s *Session) silent() bool { return s.gate.has(gateReplyOff | gateSkip) }

// keep stores what is unserved, or the start of an unfinished command until the rest arrives. It ends the connection where that
// command, with what a transaction has queued, is more than the limit.
func (s *Session) keep(rest []byte) {
	if held := len(rest) + s.reader.Held() + s.tx.bytes; !s.unserved && s.waits == nil && held > int(s.srv.cfg.queryBufferLimit.Get()) {
		s.srv.warnSeldom("client is over its query buffer limit, closed", "client", s.client.addr, "bytes", held)
		s.srv.stats.queryLimitCloses.Add(1)
		s.end, s.in = atOnce, nil
		s.tr.Close(true)
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
	s.client.queryBytes.Store(int64(len(s.in)))
	s.client.txBytes.Store(int64(s.tx.bytes))
}

// dispatch runs one command: finds its row, checks what every command's rows have in common, and calls its handler.
func (s *Session) dispatch(args [][]byte) {
	s.gate.set(gateSkip, s.gate.has(gateSkipNext))
	s.gate.set(gateSkipNext, false)
	mark := len(s.out)
	row, text := s.admit(args)
	switch {
	case s.end != open:
	case text != "":
		s.srv.stats.rejected(row, text)
		if row != nil && row.name == "exec" { // a refused EXEC ends its transaction
			s.endTx()
			text = fmt.Sprintf(errExecRejected, strings.TrimPrefix(text, "ERR "))
		}
		s.spoil()
		s.replyError("%s", text)
	case s.gate.has(gateMulti) && row.flags&immediate == 0:
		s.queue(row, args)
	default:
		s.call(row, args)
		if s.tracked(row) {
			s.invalidate(row.keysOf(args))
		}
	}
	s.endCaching(row)
	if s.silent() {
		s.out = s.out[:mark]
		s.unwrite(mark)
		if s.waits != nil {
			s.waits.muted = true
		}
	}
	s.gate.set(gateSkip, false)
}

// admit returns the row of a command, or the text of the error that it is answered with.
func (s *Session) admit(args [][]byte) (*command, string) {
	row := s.srv.commands.find(args[0])
	if row == nil {
		if isHTTP(args[0]) {
			s.srv.log.Log(context.Background(), LevelVerbose, "a browser or HTTP client speaks to this port, closed", "client", s.client.addr)
			s.end = atOnce
		}
		return nil, unknownCommand(args)
	}
	flags := row.flags
	if len(row.sub) > 0 && len(args) > 1 {
		sub := row.findSub(args[1])
		if sub == nil {
			return row, fmt.Sprintf(errUnknownSubcommand, args[1], upper(row.name))
		}
		row = sub
	}
	if row.arity > 0 && len(args) != row.arity || len(args) < -row.arity {
		return row, fmt.Sprintf(errArity, row.fullName())
	}
	if s.gate.has(gateAuth) && row.flags&noAuth == 0 {
		return row, errNoAuth
	}
	if (flags|row.flags)&loading == 0 && s.srv.gate.has(gateLoading) {
		return row, errLoading
	}
	if (flags|row.flags)&allowBusy == 0 && s.srv.gate.has(gateBusy) {
		return row, errBusy
	}
	return row, ""
}

// isHTTP recognises what a web page can make a browser send to a port on its own machine. As in Redis, the connection is
// closed before the lines that the page chose are read as commands.
func isHTTP(name []byte) bool {
	return bytes.EqualFold(name, []byte("POST")) || bytes.EqualFold(name, []byte("host:"))
}

// call runs a row's handler, and accounts for it.
//
// Rows that are fast share the batch's time, as a clock read for each would cost a quarter of a decision; the others are
// timed one by one, as only they can be slow. Below a millisecond of slowlog-log-slower-than, every command is timed, and so
// is what EXEC runs, as its own time has theirs in it.
func (s *Session) call(row *command, args [][]byte) {
	s.client.lastCommand.Store(row)
	if row.flags&write != 0 {
		if err := s.srv.persist.Refusal(); err != nil {
			s.srv.stats.rejected(row, errMisconf)
			s.replyError(errMisconf, err)
			return
		}
	}
	mark := len(s.out)
	s.scratch.asked = false
	if row.flags&fast != 0 && !s.srv.gate.has(gateTimed) && !s.tx.running && !big(args) {
		row.run(s, args)
		s.scratch.stats.count(row, 1)
	} else {
		inExec := s.tx.running
		startNS := s.srv.clock()
		row.run(s, args)
		tookNS := s.srv.clock() - startNS
		s.scratch.stats.countSlow(row, tookNS, inExec)
		s.srv.slowlog.add(s, row, args, tookNS)
		s.srv.slow(latencyEventOf(row), startNS+tookNS, tookNS)
	}
	if row.flags&decides == 0 || !s.scratch.asked { // else its answer has been accounted for, or will be
		if mark < len(s.out) && s.out[mark] == '-' {
			s.failed(row, s.out[mark:])
		}
		if row.flags&write != 0 && s.srv.synchronous {
			s.noteWrites(mark, 1)
		}
	}
	if s.srv.gate.has(gateMonitored) && row.flags&(admin|skipMonitor) == 0 { // after it has run, as in Redis: who RESETs does not see that
		s.srv.feedMonitors(s, args)
	}
}

// manyArgs and manyBytes are what a fast command may be given and stay below a millisecond: a key takes 0.5 to 2 µs.
const (
	manyArgs  = 64
	manyBytes = 16 << 10
)

// big reports arguments that make a command slow, though its row is fast.
func big(args [][]byte) bool {
	if len(args) > manyArgs {
		return true
	}
	bytes := 0
	for _, arg := range args {
		bytes += len(arg)
	}
	return bytes > manyBytes
}

// overOutput ends a connection whose one reply is over the output limit, before all of it is gathered. Commands whose
// reply grows with what was asked look at it as they go.
func (s *Session) overOutput(bytes int) bool {
	if bytes <= int(s.srv.cfg.outputBufferLimit.Get()) {
		return false
	}
	s.srv.warnSeldom("reply is over the output limit, closed", "client", s.client.addr, "command", s.client.command())
	s.srv.stats.outputLimitCloses.Add(1)
	s.end = atOnce
	return true
}

// wallNS is the wall time of the batch.
func (s *Session) wallNS() int64 { return s.srv.store.WallNS(s.nowNS) }

func (s *Session) access() store.Access {
	return store.Access{NowNS: s.nowNS, NoTouch: s.noTouch}
}

// Closed is called by the transport, once, when the connection is gone.
func (s *Session) Closed() {
	s.end, s.waits = atOnce, nil
	s.tx.discard()
	s.setMonitor(false)
	if s.round != nil { // no transport will confirm it
		s.round.decided.settle(s.srv, nil)
	}
	s.srv.forget(s)
}
