package resp

import (
	"bytes"
	"fmt"
	"strings"

	"celld/resp/command"
	"celld/resp/latency"
	"celld/resp/slowlog"
	"celld/resp/stats"
)

// dispatch runs one command: finds its row, checks what all rows have in common, and calls its handler.
func (s *Session) dispatch(args [][]byte) {
	s.gate.set(gateSkip, s.gate.has(gateSkipNext))
	s.gate.set(gateSkipNext, false)
	if row, text := s.rowOf(args); text != "" || s.end != open {
		s.admitted(row, args, text)
	} else {
		s.prepare(row, args)
	}
}

// admitted goes on with a command when all is known about it: it is refused, queued or run.
func (s *Session) admitted(row *command.Row, args [][]byte, text string) {
	mark := len(s.call.Out)
	switch {
	case s.end != open:
	case text != "":
		s.srv.stats.Rejected(row, text)
		if row != nil && row.Name == "exec" { // a refused EXEC ends its transaction
			s.endTx()
			text = fmt.Sprintf(errExecRejected, strings.TrimPrefix(text, "ERR "))
		}
		s.spoil()
		s.call.Error("%s", text)
	case s.gate.has(gateMulti) && row.Flags&command.Immediate == 0:
		s.tx.queue(s, row, args)
	default:
		s.perform(row, args)
		switch s.waits.(type) {
		case *visit, *stepwise:
			return // the gate's bits are this command's until it has been answered
		}
		s.called(row, args, mark)
		return
	}
	s.dispatched(row, mark)
}

// called ends a command that has run, or waits for the limiter.
func (s *Session) called(row *command.Row, args [][]byte, mark int) {
	if s.gate.tracked(s.client.Tracking(), row) {
		s.call.Invalidate(row.KeysOf(args))
	}
	s.dispatched(row, mark)
}

// dispatched ends what holds for one command.
func (s *Session) dispatched(row *command.Row, mark int) {
	s.gate.endCaching(row)
	if s.silence(mark) {
		if b, waits := s.waits.(*batch); waits {
			b.muted = true
		}
	}
	s.gate.set(gateSkip, false)
}

// silence removes what the running command has replied, if it gets no reply.
func (s *Session) silence(mark int) bool {
	silent := s.gate.silent()
	if silent {
		s.call.Out = s.call.Out[:mark]
		s.unwrite(mark)
	}
	return silent
}

// rowOf returns the row of a command, or the text of the error that it is answered with.
func (s *Session) rowOf(args [][]byte) (*command.Row, string) {
	row := s.srv.commands.Find(args[0])
	if row == nil {
		if isHTTP(args[0]) {
			s.srv.tellOf(&s.client, "a browser or HTTP client speaks to this port, closed")
			s.end = atOnce
		}
		return nil, command.Unknown(args)
	}
	if len(row.Sub) > 0 && len(args) > 1 {
		sub := row.FindSub(args[1])
		if sub == nil {
			return row, fmt.Sprintf(errUnknownSubcommand, args[1], strings.ToUpper(row.Name))
		}
		row = sub
	}
	if row.Arity > 0 && len(args) != row.Arity || len(args) < -row.Arity || len(args) > 2+command.ShortList && row.Most == 0 && !row.TakesMany() {
		return row, fmt.Sprintf(errArity, row.FullName())
	}
	if row.Most > 0 && len(args) > 2+row.Most {
		return row, formatError(errManyArgs, row.Most)
	}
	if row.Flags&command.NoAuth == 0 && s.mustAuth() {
		s.srv.tellOf(&s.client, tellCommand, "command", row.FullName(), "reason", "not authenticated")
		return row, errNoAuth
	}
	return row, ""
}

// closed returns the text of the error of a command that the server does not run now, or "".
func (srv *service) closed(row *command.Row) string {
	flags := row.Flags
	if row.Parent != nil {
		flags |= row.Parent.Flags
	}
	switch {
	case flags&command.Loading == 0 && srv.gate.has(gateLoading):
		return errLoading
	case flags&command.AllowBusy == 0 && srv.gate.has(gateBusy):
		return errBusy
	}
	return ""
}

// isHTTP recognises what a web page can make a browser send to a port on its own machine. As in Redis, the connection is
// closed before the lines that the page chose are read as commands.
func isHTTP(name []byte) bool {
	return bytes.EqualFold(name, []byte("POST")) || bytes.EqualFold(name, []byte("host:"))
}

// perform runs a row's handler, and accounts for it.
//
// Rows that are fast share the batch's time, as a clock read for each would cost a quarter of a decision; the others are
// timed one by one, as only they can be slow. Below a millisecond of slowlog-log-slower-than, every command is timed, and so
// is what EXEC runs, as its own time has theirs in it.
func (s *Session) perform(row *command.Row, args [][]byte) {
	s.client.LastCommand.Store(row.ACL)
	if row.Flags&command.Write != 0 {
		if err := s.srv.persist.Refusal(); err != nil {
			s.srv.stats.Rejected(row, errMisconf)
			s.call.Error(errMisconf, err)
			return
		}
	}
	if !s.srv.port.Here() && !s.tx.running && s.visit(row, args) {
		return
	}
	mark := len(s.call.Out)
	s.scratch.asked = false
	if row.Flags&command.Fast != 0 && !s.srv.gate.has(gateTimed) && !s.tx.running && !command.Big(args) {
		s.invoke(row, args)
		if s.unfinished(row, 0, mark) {
			return
		}
		s.scratch.stats.Count(row, 1, s.scratch.lane)
	} else {
		inExec := s.tx.running
		startNS := s.srv.clock()
		s.runRow(row, args)
		tookNS := s.scratch.slice.readClock() - startNS
		if s.unfinished(row, tookNS, mark) {
			s.scratch.stats.TookNS(tookNS)
			return
		}
		s.timed(row, args, tookNS, inExec)
	}
	s.replied(row, args, mark)
}

// invoke calls a row's handler.
func (s *Session) invoke(row *command.Row, args [][]byte) {
	c := s.call
	caller, callers := c.Row, c.Args // EXEC and EVAL run commands
	c.Row, c.Args, c.NowNS = row, args, s.nowNS
	row.Run(c)
	c.Row, c.Args = caller, callers
}

// timed accounts for a command that was timed by itself, or that ran inside EXEC, which was.
func (s *Session) timed(row *command.Row, args [][]byte, tookNS int64, inExec bool) {
	s.logSlow(row, args, tookNS)
	if s.scratch.visit != nil {
		s.once(func() { s.countTimed(row, tookNS, true) })
		return
	}
	s.countTimed(row, tookNS, inExec)
}

// logSlow adds a command to the slow log if it took as long as slowlog-log-slower-than says.
func (s *Session) logSlow(row *command.Row, args [][]byte, tookNS int64) {
	threshold := s.srv.cfg.SlowlogSlowerThan.Get()
	if threshold < 0 || tookNS/1e3 < threshold || row.Flags&command.SkipSlowlog != 0 {
		return
	}
	e := slowlog.Entry{UnixS: s.store().WallNS(s.nowNS) / 1e9, US: tookNS / 1e3, Args: slowlog.Trim(command.Redact(args)), Addr: s.client.Addr, Name: s.client.Names().Name}
	s.once(func() {
		s.srv.slowlog.Add(e)
		s.srv.tellOf(&s.client, tellSlow, "command", row.FullName(), "took_us", e.US)
	})
}

func (s *Session) countTimed(row *command.Row, tookNS int64, inExec bool) {
	s.scratch.stats.CountSlow(row, tookNS, inExec, s.scratch.lane)
	event := latency.Command
	if row.Flags&command.Fast != 0 {
		event = latency.FastCommand
	}
	s.srv.latency.Note(event, s.srv.clock(), tookNS)
}

// replied accounts for the reply to a command, which is in out[mark:].
func (s *Session) replied(row *command.Row, args [][]byte, mark int) {
	if row.Flags&command.Decides == 0 || !s.scratch.asked { // else its answer has been accounted for, or will be
		if mark < len(s.call.Out) && s.call.Out[mark] == '-' {
			s.failed(row, s.call.Out[mark:])
		}
		if row.Flags&command.Write != 0 && s.srv.synchronous {
			s.noteWrites(mark, 1)
		}
	}
	if s.srv.gate.has(gateMonitored) && row.Flags&(command.Admin|command.SkipMonitor) == 0 { // after it has run, as in Redis: who RESETs does not see that
		s.srv.feedMonitors(s, args)
	}
}

// failed counts a command whose reply is an error, and the error. Errors that a script passes on have been counted before.
func (s *Session) failed(row *command.Row, reply []byte) {
	if s.scratch.visit != nil {
		reply, passedOn := bytes.Clone(reply), s.scratch.passedOn
		s.scratch.passedOn = false
		s.once(func() {
			s.scratch.passedOn = passedOn
			s.failed(row, reply)
		})
		return
	}
	if s.scratch.passedOn {
		s.scratch.passedOn = false
		stats.Of(row).Failed.Add(1)
		return
	}
	s.srv.countError(row, reply)
}

// countError counts a command whose reply is an error, and the error.
func (srv *service) countError(row *command.Row, reply []byte) {
	stats.Of(row).Failed.Add(1)
	srv.stats.ErrorReplies.Add(1)
	srv.stats.Errors.Count(reply)
}

// finishBatch counts what a batch has done, and returns the time of its end, in Unix nanoseconds.
func (s *Session) finishBatch() (nowNS int64) {
	if s.scratch.stats.Calls() > 0 || !s.scratch.decider.Decided.Empty() { // none where what is decided was asked for before
		s.countDecisions()
	}
	return s.srv.countBatch(s.scratch)
}

// countBatch counts the commands of a batch, and returns the time of its end.
func (srv *service) countBatch(c *scratch) (nowNS int64) {
	if calls := c.stats.Calls(); calls > 0 {
		srv.stats.Commands.Add(c.lane, calls)
	}
	nowNS, eachNS, fast := c.stats.Finish(srv.clock, c.lane)
	if fast {
		srv.latency.Note(latency.FastCommand, nowNS, eachNS)
	}
	return nowNS
}
