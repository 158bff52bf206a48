package resp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/loglimit"
	"celld/resp/script"
)

// scriptRows are SCRIPT's subcommands.
func scriptRows() []*command.Row {
	return []*command.Row{
		{Name: "load", Arity: 3, Script: 2, Flags: command.NoScript, Usage: "script", Summary: "Compiles a script and keeps it, and returns its SHA1.", Since: "2.6.0", Group: "scripting", Cost: "O(N) where N is the length of the script", Run: onSession(cmdScriptLoad)},
		{Name: "exists", Arity: -3, Most: command.ShortList, Flags: command.NoScript, Usage: "sha1 ...", Summary: "Says for each SHA1 whether its script is kept.", Since: "2.6.0", Group: "scripting", Cost: "O(N) where N is the number of scripts", Run: onSession(cmdScriptExists)},
		{Name: "flush", Arity: -2, Flags: command.NoScript, Usage: "[ASYNC|SYNC]", Summary: "Forgets all scripts.", Since: "2.6.0", Group: "scripting", Run: onSession(cmdScriptFlush)},
		{Name: "kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Summary: "Ends the script that runs, if it has changed nothing.", Since: "2.6.0", Group: "scripting", Run: onSession(cmdScriptKill)},
	}
}

// scriptRun is a running script, and its Host. It holds the execution lock alone until it has run for longer than lua-time-limit.
// Then it is busy and releases the lock: other clients are served, but their commands get -BUSY and change nothing.
type scriptRun struct {
	s        *Session
	startNS  int64
	readOnly bool
	fate     atomic.Int32
	inExec   bool  // the transaction may have written before
	holds    bool  // replies to earlier writes of its connection have not been sent
	yieldNS  int64 // when to serve others again
}

// The fate of a scriptRun is set once. A script that has written cannot be killed, and a killed script cannot write.
const (
	hasWritten int32 = 1 + iota
	isKilled
)

// yieldEveryNS is how long a busy script runs before it lets its event loop serve others.
const yieldEveryNS = 1_000_000

// scriptEnd is the error that the caller of an ended script gets.
type scriptEnd string

func (e scriptEnd) Error() string { return string(e) }

func cmdEval(s *Session, args [][]byte)      { s.eval(args, false, false) }
func cmdEvalRO(s *Session, args [][]byte)    { s.eval(args, false, true) }
func cmdEvalSHA(s *Session, args [][]byte)   { s.eval(args, true, false) }
func cmdEvalSHARO(s *Session, args [][]byte) { s.eval(args, true, true) }

// eval is EVAL script numkeys [key ...] [arg ...], or a SHA1 in place of the script.
func (s *Session) eval(args [][]byte, bySHA, readOnly bool) {
	if s.srv.gate.has(gateMonitored) { // MONITOR shows the script before the commands that it calls
		s.srv.feedMonitors(s, args)
	}
	keys, ok := command.ParseInt(args[2])
	switch {
	case !ok:
		s.call.Error(errNotInteger)
		return
	case keys > int64(len(args)-3):
		s.call.Error(errKeysMany)
		return
	case keys < 0:
		s.call.Error(errKeysNegative)
		return
	}
	s.alone(func() {
		var found *script.Script
		if !bySHA {
			var err error
			if found, err = s.srv.scriptEngine().Load(args[1]); err != nil {
				s.call.Error("%s", err)
				return
			}
		} else if found, ok = s.srv.scriptEngine().Get(string(args[1])); !ok {
			s.call.Error(errNoScript)
			return
		}
		s.runScript(found, args[3:3+keys], args[3+keys:], readOnly)
	})
}

// scriptEngine makes the engine when it is first needed. The caller holds the execution lock alone.
func (srv *service) scriptEngine() *script.Engine {
	if srv.scripts == nil {
		srv.scripts = script.NewEngine()
	}
	return srv.scripts
}

// runScript runs a script and replies. The caller holds the execution lock alone.
func (s *Session) runScript(found *script.Script, keys, args [][]byte, readOnly bool) {
	engine := s.srv.scriptEngine()
	r := &scriptRun{s: s, startNS: s.srv.clock(), readOnly: readOnly || found.ReadOnly, inExec: s.tx.running}
	resp3, inExec, last := s.call.RESP3, s.tx.running, s.client.lastCommand.Load()
	s.call.RESP3, s.tx.running = false, true
	s.srv.running.Store(r)
	defer func() { // also after a panic
		if s.srv.gate.has(gateBusy) {
			s.tr.Resume()
			s.srv.execution.Lock()
			s.srv.gate.set(gateBusy, false)
		}
		s.srv.running.Store(nil)
		s.call.RESP3, s.tx.running = resp3, inExec
		s.client.lastCommand.Store(last)
	}()
	engine.Run(found, r, keys, args)
	mark := len(s.call.Out)
	s.call.Out = engine.AppendReply(s.call.Out, resp3)
	s.scratch.passedOn = engine.PassedOn()
	if r.fate.Load() == hasWritten && s.srv.synchronous {
		s.noteWrites(mark, 1)
	}
}

// Call runs a command of the script. It returns the reply, which it removes from the output.
func (r *scriptRun) Call(args [][]byte) []byte {
	s := r.s
	mark := len(s.call.Out)
	if r.dispatch(args); s.end != open { // the reply exceeded the output limit, and only part of it is there
		s.call.Out = s.call.Out[:mark]
		s.call.Error(errInternal)
	}
	reply := s.call.Out[mark:]
	s.call.Out = s.call.Out[:mark]
	s.unwrite(mark)
	return reply
}

// dispatch runs a command of the script, unless that may not.
func (r *scriptRun) dispatch(args [][]byte) {
	s := r.s
	row, name := s.srv.commands.Find(args[0]), args[0]
	if row != nil && len(row.Sub) > 0 && len(args) > 1 {
		row, name = row.FindSub(args[1]), bytes.Join(args[:2], []byte("|"))
	}
	text := ""
	if row == nil {
		text = fmt.Sprintf(errScriptUnknown, name)
	} else {
		text = r.refusal(row, args)
	}
	if text != "" {
		s.srv.stats.Rejected(row, text)
		s.call.Error("%s", text)
		return
	}
	if row.Flags&command.Write != 0 {
		switch first := r.fate.CompareAndSwap(0, hasWritten); {
		case first && s.srv.gate.has(gateBusy):
			s.tr.Resume() // its changes wait for the disk like all others
		case r.fate.Load() == isKilled:
			s.call.Error(errScriptKilled)
			return
		}
	}
	s.perform(row, args)
}

// refusal is the error of a command that the script may not run, or "".
func (r *scriptRun) refusal(row *command.Row, args [][]byte) string {
	switch {
	case row.Arity > 0 && len(args) != row.Arity || len(args) < -row.Arity:
		return errScriptArity
	case row.Flags&command.NoScript != 0 || row.Parent != nil && row.Parent.Flags&command.NoScript != 0:
		return errScriptRefused
	}
	switch r.s.forbid(row, args, "lua") {
	case acl.DeniedCommand:
		return errScriptNoPerm
	case acl.DeniedKey:
		return errScriptNoKey
	}
	if row.Flags&command.Write != 0 && r.readOnly {
		return errScriptReadOnly
	}
	switch text := r.s.notInside(row); text {
	case errNotInMulti:
		return errScriptRefused
	case "":
		return r.s.undeclared(row, args)
	default:
		return text
	}
}

func (r *scriptRun) Tick() error {
	srv := r.s.srv
	if r.fate.Load() == isKilled || r.s.end != open {
		return scriptEnd(errScriptKilled)
	}
	if srv.stopping.ending.Load() {
		return scriptEnd(errScriptStopping)
	}
	nowNS, limitNS := srv.clock(), srv.cfg.LuaTimeLimit.Get()*1e6
	busy := srv.gate.has(gateBusy) // this script is the busy one, as no other can run
	if !busy && limitNS > 0 && nowNS-r.startNS > limitNS {
		r.becomeBusy()
		busy = true
	}
	if busy && nowNS >= r.yieldNS {
		r.s.tr.Meanwhile(r.inExec || r.holds || r.fate.Load() == hasWritten)
		r.yieldNS = srv.clock() + yieldEveryNS
	}
	return nil
}

// becomeBusy lets others be answered. It first sends the replies to this connection's earlier commands.
func (r *scriptRun) becomeBusy() {
	s := r.s
	s.srv.log.WarnSeldom("script takes long, others are answered -BUSY until it ends", "client", s.client.addr, "took_ms", (s.srv.clock()-r.startNS)/1e6)
	switch {
	case s.silent(), s.scratch.visit != nil: // the script's reply may be removed from the output, so the output must not move
		r.holds = true
	case len(s.call.Out) > 0:
		s.srv.stats.OutputBytes.Add(s.scratch.lane, int64(len(s.call.Out)))
		s.tr.Send(s.call.Out)
		s.noteSent(len(s.call.Out))
		s.call.Out, s.scratch.mark = s.call.Out[:0], 0
	}
	s.srv.gate.set(gateBusy, true)
	s.srv.execution.Unlock()
}

func (r *scriptRun) NowNS() int64 { return r.s.srv.clock() }

func (r *scriptRun) Log(level int, text string) {
	r.s.srv.log.Log(context.Background(), [...]slog.Level{slog.LevelDebug, loglimit.Verbose, slog.LevelInfo, slog.LevelWarn}[level], "script: "+text)
}

func (r *scriptRun) SetProtocol(version int) { r.s.call.RESP3 = version == 3 }

func (r *scriptRun) OverOutput(bytes int) bool { return r.s.end != open || r.s.overOutput(bytes) }

func cmdScriptLoad(s *Session, args [][]byte) {
	s.alone(func() {
		if found, err := s.srv.scriptEngine().Load(args[2]); err != nil {
			s.call.Error("%s", err)
		} else {
			s.call.String(found.SHA)
		}
	})
}

func cmdScriptExists(s *Session, args [][]byte) {
	s.alone(func() {
		engine := s.srv.scriptEngine()
		s.call.Array(len(args) - 2)
		for _, sha := range args[2:] {
			s.call.Bool(engine.Has(string(sha)))
		}
	})
}

func cmdScriptFlush(s *Session, args [][]byte) {
	if len(args) > 3 || len(args) == 3 && !strings.EqualFold(string(args[2]), "sync") && !strings.EqualFold(string(args[2]), "async") {
		s.call.Error(errScriptFlush)
		return
	}
	s.alone(func() { s.srv.scriptEngine().Flush() })
	s.call.OK()
}

func cmdScriptKill(s *Session, _ [][]byte) {
	r := s.srv.running.Load()
	switch {
	case r == nil:
		s.call.Error(errNotBusy)
	case r.fate.CompareAndSwap(0, isKilled) || r.fate.Load() == isKilled:
		s.call.OK()
	default:
		s.call.Error(errUnkillable)
	}
}
