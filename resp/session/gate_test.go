package session

import (
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/session/sessiontest"
)

// Who has not given the password is answered nothing else, also where a pipeline's calls are alike.
func TestAPipelineBeforeAUTH(t *testing.T) {
	for _, call := range shortCalls {
		w := newWorld(t, "requirepass", "secret")
		if got, want := w.connect().send(strings.Repeat(call.frame, 3)), strings.Repeat("-"+errNoAuth+"\r\n", 3); got != want {
			t.Errorf("at the start: %q", got)
		}
	}
}

// shortCalls are calls that a pipeline decides in batches. They only look, so each has the same reply.
var shortCalls = []struct{ row, frame, reply string }{
	{"cl.throttle", sessiontest.Frame("CL.THROTTLE", "k", "4", "1", "60", "0"), "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n"},
	{"cl.take", sessiontest.Frame("CL.TAKE", "k", "5/1m", "PEEK"), "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n"},
}

// countSingles returns how many calls of a row have been run by themselves.
func (w *world) countSingles(name string) *int {
	singles, row := new(int), w.Commands.Find([]byte(name))
	run := row.Run
	row.Run = func(c *command.Call) { *singles++; run(c) }
	return singles
}

// Each reason to look at single commands holds from the command on that brings it about to that which ends it, in the middle of
// a pipeline and whoever sends them.
func TestGates(t *testing.T) {
	const ok, misconf = "+OK\r\n", "-MISCONF Errors writing to the AOF file: no space left on device\r\n"
	slower := func(us string) string { return "CONFIG SET slowlog-log-slower-than " + us + "\r\n" }
	tests := map[string]struct {
		settings   []string
		start      string // commands that are answered by OK
		set        string // then two calls
		meanwhile  string // is the answer to set and the calls; "=" is that of a call as ever
		singles    int    // of those calls, that are run by themselves
		clear, end string // the answer to clear
	}{
		"nothing":                {meanwhile: "=="},
		"RESET with a password":  {settings: []string{"requirepass", "x"}, start: "AUTH x\r\n", set: "RESET\r\n", meanwhile: "+RESET\r\n-" + errNoAuth + "\r\n-" + errNoAuth + "\r\n", clear: "AUTH x\r\n", end: ok},
		"HELLO with a password":  {settings: []string{"requirepass", "x"}, start: "AUTH x\r\n", set: "RESET\r\n", meanwhile: "+RESET\r\n-" + errNoAuth + "\r\n-" + errNoAuth + "\r\n", clear: "HELLO 2 AUTH default x SETNAME a\r\nCLIENT GETNAME\r\n", end: "$1\r\na\r\n"},
		"MULTI, EXEC":            {set: "MULTI\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n", clear: "EXEC\r\n", end: "*2\r\n==", singles: 2},
		"MULTI, DISCARD":         {set: "MULTI\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n", clear: "DISCARD\r\n", end: ok},
		"MULTI, a refused EXEC":  {set: "MULTI\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n", clear: "NOSUCH\r\nEXEC\r\n", end: "-ERR unknown command 'NOSUCH', with args beginning with: \r\n-" + errExecAbort + "\r\n"},
		"MULTI, an invalid EXEC": {set: "MULTI\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n", clear: "EXEC now\r\n", end: "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n"},
		"MULTI, RESET":           {set: "MULTI\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n", clear: "RESET\r\n", end: "+RESET\r\n"},
		"CLIENT REPLY OFF":       {set: "CLIENT REPLY OFF\r\n", singles: 2, clear: "CLIENT REPLY ON\r\n", end: ok},
		"REPLY OFF, RESET":       {set: "CLIENT REPLY OFF\r\n", singles: 2, clear: "RESET\r\n", end: "+RESET\r\n"},
		"REPLY OFF, SKIP, RESET": {set: "CLIENT REPLY OFF\r\n", singles: 2, clear: "CLIENT REPLY SKIP\r\nRESET\r\n", end: "+RESET\r\n"},
		"SKIP, ON, in EXEC":      {set: "MULTI\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nEXEC\r\n", meanwhile: ok + "+QUEUED\r\n+QUEUED\r\n*2\r\n" + ok + "=="},
		"CLIENT REPLY SKIP":      {set: "CLIENT REPLY SKIP\r\n", meanwhile: "=", singles: 1},
		"SKIP, nothing":          {set: "CLIENT REPLY SKIP\r\n*0\r\n", meanwhile: "=="},
		"SKIP, REPLY ON":         {set: "CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\n", meanwhile: ok + "=="},
		"CLIENT CACHING":         {start: "CLIENT TRACKING ON OPTIN\r\n", set: "CLIENT CACHING YES\r\n", meanwhile: ok + "==", singles: 1},
		"CACHING, TRACKING OFF":  {start: "CLIENT TRACKING ON OPTIN\r\n", set: "CLIENT CACHING YES\r\nCLIENT TRACKING OFF\r\n", meanwhile: ok + ok + "=="},
		"CACHING, RESET":         {start: "CLIENT TRACKING ON OPTIN\r\n", set: "CLIENT CACHING YES\r\nRESET\r\n", meanwhile: ok + "+RESET\r\n=="},
		"timed":                  {set: slower("0"), meanwhile: ok + "==", singles: 2, clear: slower("10000"), end: ok},
		"timed, just":            {set: slower("999"), meanwhile: ok + "==", singles: 2, clear: slower("1000"), end: ok},
		"timed, not":             {set: slower("1000"), meanwhile: ok + "==", clear: slower("-1"), end: ok},
		"timed by another":       {set: "OTHER " + slower("0"), meanwhile: ok + "==", singles: 2, clear: "OTHER " + slower("-1"), end: ok},
		"timed from the start":   {settings: []string{"slowlog-log-slower-than", "0"}, clear: slower("-1"), meanwhile: "==", singles: 4, end: ok},
		"MONITOR":                {set: "OTHER MONITOR\r\n", meanwhile: ok + "==", singles: 2, clear: "OTHER RESET\r\n", end: ok},
		"MONITOR, closed":        {set: "OTHER MONITOR\r\n", meanwhile: ok + "==", singles: 2, clear: "CLOSED\r\n", end: ok},
		"a full disk":            {set: "FULL yes\r\n", meanwhile: ok + misconf + misconf, clear: "FULL no\r\n", end: ok},
	}
	for name, test := range tests {
		for _, call := range shortCalls {
			t.Run(name+"/"+call.row, func(t *testing.T) {
				disk := &sessiontest.Disk{}
				w := newWorldOn(t, disk, t.TempDir(), test.settings...)
				if err := w.Persist.Start(func(step func() bool) {}, nil); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(w.Persist.Stop)
				singles := w.countSingles(call.row)
				other := w.connect()
				for _, row := range []*command.Row{
					{Name: "other", Arity: -2, Run: onSession(func(s *Session, args [][]byte) {
						var words []string
						for _, arg := range args[1:] {
							words = append(words, string(arg))
						}
						other.do(words...)
						s.call.OK()
					})},
					{Name: "closed", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { other.Closed(); s.call.OK() })},
					{Name: "full", Arity: 2, Run: onSession(func(s *Session, args [][]byte) {
						if disk.Full.Store(string(args[1]) == "yes"); disk.Full.Load() {
							w.Persist.Begin()
							other.do("SET", "other", "5")
							if err := w.Persist.Commit(); err == nil {
								t.Error("written")
							}
						} else {
							w.Persist.Tick()
						}
						s.call.OK()
					})},
				} {
					w.Commands.Add(row)
				}
				c := w.connect()
				got := c.send(test.start + strings.Repeat(call.frame, 2) + test.set + strings.Repeat(call.frame, 2) + test.clear +
					strings.Repeat(call.frame, 3))
				want := strings.Repeat(ok, strings.Count(test.start, "\n")) +
					strings.ReplaceAll("=="+test.meanwhile+test.end+"===", "=", call.reply)
				if strings.HasPrefix(test.clear, "HELLO") {
					i := strings.Index(got, test.end)
					got = got[:max(0, strings.Index(got, "*14\r\n"))] + got[max(0, i):]
				}
				if got != want {
					t.Errorf("%q, want %q", got, want)
				}
				if *singles != test.singles {
					t.Errorf("%d calls were run by themselves", *singles)
				}
			})
		}
	}
}

// A protocol error has no reply where a command had none.
func TestAProtocolErrorWithoutReply(t *testing.T) {
	for set, want := range map[string]string{
		"": "-ERR Protocol error: invalid multibulk length\r\n", "CLIENT REPLY OFF\r\n": "", "CLIENT REPLY SKIP\r\n": "",
	} {
		if got := newWorld(t).connect().send(set + "*x\r\n"); got != want {
			t.Errorf("%s: %q", set, got)
		}
	}
}

// meanwhileTransport calls a function where others are to be served.
type meanwhileTransport struct {
	sessiontest.Conn
	meanwhile func()
}

func (t *meanwhileTransport) ServeOthers(bool) { t.meanwhile() }

// While another's script takes too long, and not after that, each call of a pipeline is refused.
func TestThePipelineBesideABusyScript(t *testing.T) {
	for _, call := range shortCalls {
		w := newWorld(t, busySettings...)
		w.Commands.Add(&command.Row{Name: "sleep", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(2); s.call.OK() })})
		asked := 0
		w.Commands.Add(&command.Row{Name: "asked", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { s.call.Bool(asked > 0) })})
		singles, c := w.countSingles(call.row), w.connect()
		script, _ := w.NewSession(sessiontest.RemoteAddr, sessiontest.LocalAddr)
		script.Open(&meanwhileTransport{meanwhile: func() {
			asked++
			if got, want := c.send(strings.Repeat(call.frame, 3)), strings.Repeat("-"+errBusy+"\r\n", 3); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}}, -1)
		script.Serve([]byte(evalCall("redis.call('SLEEP') while redis.call('ASKED') == 0 do end")))
		if got, want := c.send(strings.Repeat(call.frame, 3)), strings.Repeat(call.reply, 3); got != want || *singles != 0 || asked == 0 {
			t.Errorf("%q, want %q; %d calls were run by themselves", got, want, *singles)
		}
	}
}
