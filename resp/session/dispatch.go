package session

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/stats"
)

// inFlight is a command that a session runs, once its row is known.
type inFlight struct {
	s    *Session
	row  *command.Row
	args [][]byte
}

// dispatch runs one command: finds its row, checks what all rows have in common, and calls its handler.
func (s *Session) dispatch(args [][]byte) {
	s.gate.Set(gate.Skip, s.gate.Has(gate.SkipNext))
	s.gate.Set(gate.SkipNext, false)
	if row, text := s.rowOf(args); text != "" || s.end != open {
		inFlight{s, row, args}.admitted(text)
	} else {
		inFlight{s, row, args}.prepare()
	}
}

// admitted goes on with a command when all is known about it: it is refused, queued or run.
func (f inFlight) admitted(text string) {
	s, row, args := f.s, f.row, f.args
	mark := len(s.call.Out)
	switch {
	case s.end != open:
	case text != "":
		if row != nil && row.Name == "exec" { // a refused EXEC ends its transaction
			s.endTx()
			text = fmt.Sprintf(errExecRejected, strings.TrimPrefix(text, "ERR "))
		}
		s.tx.spoiled = s.gate.Has(gate.Multi)
		s.reject(row, text)
	case s.gate.Has(gate.Multi) && row.Flags&spec.Immediate == 0:
		s.tx.queue(s, row, args)
	default:
		f.perform()
		switch s.waits.(type) {
		case *keyTx, *stepwise, *elsewhere:
			return // the gate's bits are this command's until it has been answered
		}
		f.called(mark)
		return
	}
	f.dispatched(mark)
}

// reject answers a command that does not run with an error, and counts that. row is nil for one that there is not.
func (s *Session) reject(row *command.Row, text string) {
	s.srv.Stats.Rejected(row, text)
	s.call.Error("%s", text)
}

// called ends a command that has run, or waits for the limiter.
func (f inFlight) called(mark int) {
	s, row, args := f.s, f.row, f.args
	if s.gate.Tracked(s.client.Tracking(), row) {
		s.call.Invalidate(row.KeysOf(args))
	}
	f.dispatched(mark)
}

// dispatched ends what holds for one command.
func (f inFlight) dispatched(mark int) {
	s, row := f.s, f.row
	s.gate.EndCaching(row)
	if f.silence(mark) {
		if b, waits := s.waits.(*batch); waits {
			b.muted = true
		}
	}
	s.gate.Set(gate.Skip, false)
}

// silence removes what the running command has replied, if it gets no reply.
func (f inFlight) silence(mark int) bool {
	s := f.s
	silent := s.gate.Silent()
	if silent {
		s.call.Out = s.call.Out[:mark]
		s.round.unwrite(mark)
	}
	return silent
}

// rowOf returns the row of a command, or the text of the error that it is answered with.
func (s *Session) rowOf(args [][]byte) (*command.Row, string) {
	row := s.srv.Commands.Find(args[0])
	if row == nil {
		if isHTTP(args[0]) {
			s.srv.LogOf(&s.client, "a browser or HTTP client speaks to this port, closed")
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
	if text := row.ArityError(len(args)); text != "" {
		return row, text
	}
	if row.Flags&spec.NoAuth == 0 && s.mustAuth() {
		s.srv.LogOf(&s.client, door.RefusedCommand, "command", row.FullName(), "reason", "not authenticated")
		return row, errNoAuth
	}
	return row, ""
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
func (f inFlight) perform() {
	s, row, args := f.s, f.row, f.args
	s.client.LastCommand.Store(row.ACL)
	if refused := s.srv.Unkept(row); refused != nil {
		s.reject(row, refused.Text)
		return
	}
	if !s.srv.Port.InProcess() && !s.tx.running && f.openTx() {
		return
	}
	mark := len(s.call.Out)
	s.scratch.asked = false
	if row.Flags&spec.Fast != 0 && !s.srv.Gate.Has(gate.Timed) && !s.tx.running && !command.Big(args) {
		f.invoke()
		if f.unfinished(0, mark) {
			return
		}
		s.scratch.stats.Count(row, 1, s.scratch.lane)
	} else {
		inExec := s.tx.running
		startNS := s.srv.Clock()
		f.runRow()
		tookNS := s.scratch.slice.ReadClock() - startNS
		if f.unfinished(tookNS, mark) {
			s.scratch.stats.TookNS(tookNS)
			return
		}
		f.timed(tookNS, inExec)
	}
	f.replied(mark)
}

// invoke calls a row's handler.
func (f inFlight) invoke() {
	s, row, args := f.s, f.row, f.args
	c := s.call
	caller, callers := c.Row, c.Args // EXEC and EVAL run commands
	c.Row, c.Args, c.NowNS = row, args, s.nowNS
	row.Run(c)
	c.Row, c.Args = caller, callers
}

// timed accounts for a command that was timed by itself, or that ran inside EXEC, which was.
func (f inFlight) timed(tookNS int64, inExec bool) {
	s := f.s
	f.logSlow(tookNS)
	if s.scratch.keyTx != nil {
		s.scratch.once(func() { f.countTimed(tookNS, true) })
		return
	}
	f.countTimed(tookNS, inExec)
}

// logSlow adds a command to the slow log if it took as long as slowlog-log-slower-than says.
func (f inFlight) logSlow(tookNS int64) {
	s, row, args := f.s, f.row, f.args
	threshold := s.srv.Config.SlowlogSlowerThan.Get()
	if threshold < 0 || tookNS/1e3 < threshold || row.Flags&spec.SkipSlowlog != 0 {
		return
	}
	e := stats.SlowEntry{UnixS: s.store().WallNS(s.nowNS) / 1e9, US: tookNS / 1e3, Args: stats.TrimArgs(len(args), command.Shown(args)),
		Addr: s.client.Addr, Name: s.client.Names().Name}
	s.scratch.once(func() {
		s.srv.slowlog.Add(e)
		s.srv.LogOf(&s.client, door.SlowCommand, "command", row.FullName(), "took_us", e.US)
	})
}

func (f inFlight) countTimed(tookNS int64, inExec bool) {
	s, row := f.s, f.row
	s.scratch.stats.CountSlow(row, tookNS, inExec, s.scratch.lane)
	event := stats.CommandEvent
	if row.Flags&spec.Fast != 0 {
		event = stats.FastCommandEvent
	}
	s.srv.Latency.Note(event, tookNS)
}

// replied accounts for the reply to a command, which is in out[mark:].
func (f inFlight) replied(mark int) {
	s, row, args := f.s, f.row, f.args
	if row.Flags&spec.Decides == 0 || !s.scratch.asked { // else its answer has been accounted for, or will be
		if mark < len(s.call.Out) && s.call.Out[mark] == '-' {
			f.failed(s.call.Out[mark:])
		}
		if row.Flags&spec.Write != 0 && s.srv.Synchronous {
			s.inRound().wrote(mark, len(s.call.Out), 1)
		}
	}
	if row.Flags&spec.Audited != 0 {
		f.audit(s.call.Out[mark:])
	}
	// After it has run, as in Redis: who RESETs does not see that.
	if s.srv.Gate.Has(gate.Monitored) && row.Flags&(spec.Admin|spec.SkipMonitor) == 0 {
		s.feedMonitors(args)
	}
}

// audit logs who has changed something: a command that replies OK, or how much it has changed.
func (f inFlight) audit(reply []byte) {
	if len(reply) == 0 || reply[0] != '+' && (reply[0] != ':' || reply[1] == '0') {
		return
	}
	s := f.s
	told := strings.Join(stats.TrimArgs(len(f.args), command.Told(f.args)), " ")
	user := s.client.User.Load().Name()
	s.scratch.once(func() {
		s.srv.Log.Bounded(mostChanges, changed, slog.LevelInfo, changed, "command", told, "user", user, "client", s.client.Addr)
	})
}

// changed is the line of an operator's change, and mostChanges how many the log has a second: a script that sets plans makes many.
const (
	changed     = "an operator has changed something"
	mostChanges = 1000
)

// feedMonitors sends a command to every monitor in Redis's form, without secrets.
func (s *Session) feedMonitors(args [][]byte) {
	who := s.client.MonitorAddr()
	if s.srv.running.by(&s.client) {
		who = "lua"
	}
	line := client.MonitorLine(s.store().WallNS(s.nowNS), who, command.Shown(args))
	s.scratch.once(func() {
		told := s.srv.TellMonitors(line)
		s.scratch.slice.Did(told, told*len(line))
	})
}

// failed counts a command whose reply is an error, and the error. Errors that a script passes on have been counted before.
func (f inFlight) failed(reply []byte) {
	c := f.s.scratch
	if c.keyTx != nil {
		reply, passedOn := bytes.Clone(reply), c.passedOn
		c.passedOn = false
		c.once(func() {
			f.s.scratch.passedOn = passedOn
			f.failed(reply)
		})
		return
	}
	if c.passedOn {
		c.passedOn = false
		stats.Of(f.row).Failed.Add(1)
		return
	}
	f.s.srv.CountError(f.row, reply)
}

// finishBatch counts what a batch has done, and returns the time of its end, in Unix nanoseconds.
func (s *Session) finishBatch() (nowNS int64) {
	if s.scratch.stats.Calls() > 0 || !s.scratch.decider.Decided.Empty() { // none where what is decided was asked for before
		s.countDecisions()
	}
	return s.srv.Finish(&s.scratch.stats, s.scratch.lane)
}
