package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/loglimit"
	"celld/resp/scripts"
)

// scriptRows are the commands on scripts.
func scriptRows() []*command.Row {
	return []*command.Row{
		{Name: "eval", Arity: -3, Script: 1, Flags: spec.NoScript | spec.SkipMonitor, Keys: spec.ScriptKeys, Usage: "script numkeys [key ...] [arg ...]", Summary: "Runs a Lua script.", Since: "2.6.0", Group: "scripting", Cost: "Depends on the script", Run: eval(compiled, false)},
		{Name: "eval_ro", Arity: -3, Script: 1, Flags: spec.Readonly | spec.NoScript | spec.SkipMonitor, Keys: spec.ScriptKeys, Usage: "script numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that changes nothing.", Since: "7.0.0", Group: "scripting", Cost: "Depends on the script", Run: eval(compiled, true)},
		{Name: "evalsha", Arity: -3, Flags: spec.NoScript | spec.SkipMonitor, Keys: spec.ScriptKeys, Usage: "sha1 numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that is kept.", Since: "2.6.0", Group: "scripting", Cost: "Depends on the script", Run: eval(kept, false)},
		{Name: "evalsha_ro", Arity: -3, Flags: spec.Readonly | spec.NoScript | spec.SkipMonitor, Keys: spec.ScriptKeys, Usage: "sha1 numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that is kept, and changes nothing.", Since: "7.0.0", Group: "scripting", Cost: "Depends on the script", Run: eval(kept, true)},
		{Name: "script", Arity: -2, Summary: "A container for Lua scripts management commands.", Since: "2.6.0", Group: "scripting",
			Sub: []*command.Row{
				{Name: "load", Arity: 3, Script: 2, Flags: spec.NoScript, Usage: "script", Summary: "Compiles a script and keeps it, and returns its SHA1.", Since: "2.6.0", Group: "scripting", Cost: "O(N) where N is the length of the script", Run: scriptLoad},
				{Name: "exists", Arity: -3, Most: spec.ShortList, Flags: spec.NoScript, Usage: "sha1 ...", Summary: "Says for each SHA1 whether its script is kept.", Since: "2.6.0", Group: "scripting", Cost: "O(N) where N is the number of scripts", Run: scriptExists},
				{Name: "flush", Arity: -2, Flags: spec.NoScript, Usage: "[ASYNC|SYNC]", Summary: "Forgets all scripts.", Since: "2.6.0", Group: "scripting", Run: scriptFlush},
				{Name: "kill", Arity: 2, Flags: spec.NoScript | spec.AllowBusy, Summary: "Ends the script that runs, if it has changed nothing.", Since: "2.6.0", Group: "scripting", Run: scriptKill},
			}},
	}
}

// scriptRun is a running script, and its Host. It holds the execution lock alone until it has run for longer than lua-time-limit.
// Then it is busy and releases the lock: other clients are served, but their commands get -BUSY and change nothing.
type scriptRun struct {
	runningScript
	s        *Session
	readOnly bool
	inExec   bool  // the transaction may have written before
	holds    bool  // replies to earlier writes of its connection have not been sent
	yieldNS  int64 // when to serve others again
}

// yieldEveryNS is how long a busy script runs before it lets its event loop serve others.
const yieldEveryNS = 1_000_000

// scriptEnd is the error that the caller of an ended script gets.
type scriptEnd string

func (e scriptEnd) Error() string { return string(e) }

// compiled and kept find the script of a call: by its text, and by its SHA1. They return the text of an error, or "".
func compiled(e scripts.Engine, text []byte) (found *scripts.Script, problem string) {
	found, err := e.Load(text)
	if err != nil {
		return nil, err.Error()
	}
	return found, ""
}

func kept(e scripts.Engine, sha []byte) (found *scripts.Script, problem string) {
	found, ok := e.Get(string(sha))
	if !ok {
		return nil, errNoScript
	}
	return found, ""
}

// eval returns the handler of EVAL script numkeys [key ...] [arg ...], or of those like it.
func eval(find func(scripts.Engine, []byte) (*scripts.Script, string), readOnly bool) func(*command.Call) {
	return func(c *command.Call) {
		s, args := sessionOf(c), c.Args
		if s.srv.Gate.Has(gate.Monitored) { // MONITOR shows the script before the commands that it calls
			s.feedMonitors(args)
		}
		keys, ok := argument.ParseInt(args[2])
		switch {
		case !ok:
			c.Error(errNotInteger)
			return
		case keys > int64(len(args)-3):
			c.Error(errKeysMany)
			return
		case keys < 0:
			c.Error(errKeysNegative)
			return
		}
		s.alone(func() {
			found, problem := find(s.srv.scriptEngine(), args[1])
			if problem != "" {
				c.Error("%s", problem)
				return
			}
			run := &scriptRun{s: s, readOnly: readOnly || found.ReadOnly, inExec: s.tx.running}
			run.client, run.startNS = &s.client, s.srv.Clock()
			run.run(found, args[3:3+keys], args[3+keys:])
		})
	}
}

// scriptEngine makes the engine when it is first needed. The caller holds the execution lock alone.
func (srv *Service) scriptEngine() scripts.Engine {
	if srv.scripts == nil {
		srv.scripts = srv.newScripts()
	}
	return srv.scripts
}

// run runs the script and replies. The caller holds the execution lock alone.
func (r *scriptRun) run(found *scripts.Script, keys, args [][]byte) {
	s, engine := r.s, r.s.srv.scriptEngine()
	resp3, inExec, last := s.call.RESP3, s.tx.running, s.client.LastCommand.Load()
	s.call.RESP3, s.tx.running = false, true
	s.srv.running.Store(&r.runningScript)
	defer func() { // also after a panic
		if s.srv.Gate.Has(gate.Busy) {
			s.client.Conn.Resume()
			s.srv.Execution.Lock()
			s.srv.Gate.Set(gate.Busy, false)
		}
		s.srv.running.Store(nil)
		s.call.RESP3, s.tx.running = resp3, inExec
		s.client.LastCommand.Store(last)
	}()
	engine.Run(found, r, keys, args)
	mark := len(s.call.Out)
	s.call.Out = engine.AppendReply(s.call.Out, resp3)
	s.scratch.passedOn = engine.PassedOn()
	if r.fate.Load() == hasWritten && s.srv.Synchronous {
		s.inRound().wrote(mark, len(s.call.Out), 1)
	}
}

// Call runs a command of the script. It returns the reply, which it removes from the output.
func (r *scriptRun) Call(args [][]byte) []byte {
	s := r.s
	mark := len(s.call.Out)
	if r.dispatch(args); s.end != open { // the reply exceeded the output limit, and only part of it is there
		s.call.Out = s.call.Out[:mark]
		s.call.Error(door.ErrInternal)
	}
	reply := s.call.Out[mark:]
	s.call.Out = s.call.Out[:mark]
	s.round.unwrite(mark)
	return reply
}

// dispatch runs a command of the script, unless that may not.
func (r *scriptRun) dispatch(args [][]byte) {
	s := r.s
	row, name := s.srv.Commands.Find(args[0]), args[0]
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
		s.reject(row, text)
		return
	}
	if row.Flags&spec.Write != 0 {
		switch first := r.fate.CompareAndSwap(0, hasWritten); {
		case first && s.srv.Gate.Has(gate.Busy):
			s.client.Conn.Resume() // its changes wait for the disk like all others
		case r.fate.Load() == isKilled:
			s.call.Error(errScriptKilled)
			return
		}
	}
	inFlight{s, row, args}.perform()
}

// refusal is the error of a command that the script may not run, or "".
func (r *scriptRun) refusal(row *command.Row, args [][]byte) string {
	switch {
	case row.ArityError(len(args)) != "":
		return errScriptArity
	case row.Flags&spec.NoScript != 0 || row.Parent != nil && row.Parent.Flags&spec.NoScript != 0:
		return errScriptRefused
	}
	f := inFlight{r.s, row, args}
	switch f.forbid() {
	case acl.DeniedCommand:
		return errScriptNoPerm
	case acl.DeniedKey:
		return errScriptNoKey
	}
	if row.Flags&spec.Write != 0 && r.readOnly {
		return errScriptReadOnly
	}
	return cmp.Or(r.s.srv.notInside(row), f.undeclared())
}

func (r *scriptRun) Tick() error {
	srv := r.s.srv
	if r.fate.Load() == isKilled || r.s.end != open {
		return scriptEnd(errScriptKilled)
	}
	nowNS, limitNS := srv.Clock(), srv.Config.LuaTimeLimit.Get()*1e6
	if srv.Ending.Load() && nowNS >= srv.EndsNS.Load() {
		return scriptEnd(errScriptStopping)
	}
	busy := srv.Gate.Has(gate.Busy) // this script is the busy one, as no other can run
	if !busy && limitNS > 0 && nowNS-r.startNS > limitNS {
		r.becomeBusy()
		busy = true
	}
	if busy && nowNS >= r.yieldNS {
		r.s.client.Conn.ServeOthers(r.inExec || r.holds || r.fate.Load() == hasWritten)
		r.yieldNS = srv.Clock() + yieldEveryNS
	}
	return nil
}

// becomeBusy lets others be answered. It first sends the replies to this connection's earlier commands.
func (r *scriptRun) becomeBusy() {
	s := r.s
	s.srv.Log.WarnLimited("script takes long, others are answered -BUSY until it ends", "client", s.client.Addr,
		"took_ms", (s.srv.Clock()-r.startNS)/1e6)
	switch {
	case s.gate.Silent(), s.scratch.keyTx != nil: // the script's reply may be removed from the output, so the output must not move
		r.holds = true
	case len(s.call.Out) > 0:
		s.send()
	}
	s.srv.Gate.Set(gate.Busy, true)
	s.srv.Execution.Unlock()
}

func (r *scriptRun) NowNS() int64 { return r.s.srv.Clock() }

func (r *scriptRun) Log(level int, text string) {
	r.s.srv.Log.Log(context.Background(), [...]slog.Level{slog.LevelDebug, loglimit.Verbose, slog.LevelInfo, slog.LevelWarn}[level],
		"script: "+text)
}

func (r *scriptRun) SetProtocol(version int) { r.s.call.RESP3 = version == 3 }

func (r *scriptRun) OverOutput(bytes int) bool { return r.s.end != open || r.s.overOutput(bytes) }

func scriptLoad(c *command.Call) {
	c.Alone(func() {
		if found, err := sessionOf(c).srv.scriptEngine().Load(c.Args[2]); err != nil {
			c.Error("%s", err)
		} else {
			c.String(found.SHA)
		}
	})
}

func scriptExists(c *command.Call) {
	c.Alone(func() {
		engine := sessionOf(c).srv.scriptEngine()
		c.Array(len(c.Args) - 2)
		for _, sha := range c.Args[2:] {
			c.Bool(engine.Has(string(sha)))
		}
	})
}

// flushOptions is how SCRIPT FLUSH may be done, which is the same to celld.
var flushOptions = argument.Options{Flags: []string{"SYNC", "ASYNC"}, Refusal: errScriptFlush}

func scriptFlush(c *command.Call) {
	text := flushOptions.Read(c.Args[2:], func(string, []byte) string { return "" })
	if text != "" || len(c.Args) > 3 {
		c.Error(errScriptFlush)
		return
	}
	c.Alone(func() { sessionOf(c).srv.scriptEngine().Flush() })
	c.OK()
}

func scriptKill(c *command.Call) {
	r := sessionOf(c).srv.running.Load()
	switch {
	case r == nil:
		c.Error(errNotBusy)
	case r.fate.CompareAndSwap(0, isKilled) || r.fate.Load() == isKilled:
		c.OK()
	default:
		c.Error(errUnkillable)
	}
}
