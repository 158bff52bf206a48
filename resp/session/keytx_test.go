package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
	"celld/store"
)

const soon = "1790000900000000000" // a TAT that has not passed

// setBehind changes a key on the engine as another celld would.
func setBehind(e *sessiontest.Engine, key, tat string) {
	n, _ := strconv.ParseUint(tat, 10, 64)
	sessiontest.Put(e.Store, []byte(key), store.Value{TAT: n, ExpiryNS: store.NoExpiry}, e.Now())
}

// A session waits for what its keys hold, and others go on.
func TestAVisitWaits(t *testing.T) {
	w, e := engineWorld(t, true)
	p, other := w.connect(), w.connect()
	if got := p.send("PING\r\nSET k " + soon + "\r\nGET k\r\nPING\r\n"); got != "+PONG\r\n" || !p.tr.Paused || e.Due() != 1 {
		t.Fatalf("%q, paused %v, %d due", got, p.tr.Paused, e.Due())
	}
	other.want("PING", "+PONG\r\n")
	other.send("MULTI\r\nPING\r\n")
	other.want("EXEC", "*1\r\n+PONG\r\n") // which waits for nobody
	e.Answer()
	if got := p.send(""); got != "" || e.Due() != 1 {
		t.Fatalf("%q before it is stored, %d due", got, e.Due())
	}
	if got := answerAll(e, p); got != "+OK\r\n$19\r\n"+soon+"\r\n+PONG\r\n" || p.tr.Paused {
		t.Fatalf("%q, paused %v", got, p.tr.Paused)
	}
	if len(e.Opened) != 2 || e.Closed != 2 {
		t.Errorf("views of %q, %d closed", e.Opened, e.Closed)
	}
}

// After a conflict the handler runs on what is there now, and nothing of the first time is left: no reply, no count, no line.
func TestConflicts(t *testing.T) {
	w, e := engineWorld(t, false, "slowlog-log-slower-than", "0")
	p, monitor := w.connect(), w.connect()
	monitor.send("MONITOR\r\n")
	e.Later = true

	p.do("SETNX", "k", soon)
	e.Answer()
	p.Serve(nil)
	setBehind(e, "k", "1790000800000000000")
	if got := answerAll(e, p); got != ":0\r\n" {
		t.Errorf("SETNX: %q", got)
	}

	p.do("MULTI")
	p.do("CL.THROTTLE", "k", "100", "1", "60")
	p.do("HGET", "k", "x")
	p.do("HELLO", "3")
	p.do("CLIENT", "REPLY", "SKIP")
	p.do("DEL", "gone")
	monitor.Serve(nil)
	monitor.tr.Take()
	w.slowlog.Reset()
	before := w.Decisions.Sum()
	p.do("EXEC")
	for i := range 3 {
		e.Answer()
		p.Serve(nil)
		setBehind(e, "k", fmt.Sprint(1_790_000_700_000_000_000+i))
	}
	got := answerAll(e, p)
	want := "*5\r\n*5\r\n:0\r\n:101\r\n:88\r\n:-1\r\n:760\r\n-" + errWrongType + "\r\n%7\r\n"
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "+OK\r\n:0\r\n") && !strings.HasSuffix(got, ":0\r\n") {
		t.Errorf("EXEC: %q", got)
	}
	if n := w.Decisions.Sum()[decisions.ThrottleAllowed] - before[decisions.ThrottleAllowed]; n != 1 {
		t.Errorf("%d decisions are counted", n)
	}
	for name, want := range map[string]int64{"cl.throttle": 1, "hget": 1, "exec": 1, "setnx": 1} {
		st := stats.Of(w.Commands.Find([]byte(name)))
		if calls, _, _ := st.Read(); calls != want {
			t.Errorf("%d calls of %s are counted", calls, name)
		}
	}
	if n := stats.Of(w.Commands.Find([]byte("hget"))).Failed.Load(); n != 1 {
		t.Errorf("%d failures of HGET are counted", n)
	}
	monitor.Serve(nil)
	if lines := monitor.tr.Take(); strings.Count(lines, "HGET") != 1 || strings.Count(lines, "EXEC") != 1 ||
		strings.Index(lines, "HGET") > strings.Index(lines, "EXEC") {
		t.Errorf("MONITOR shows %q", lines)
	}
	if n := len(w.slowlog.Last(-1)); n != 5 { // its commands
		t.Errorf("%d entries in the slow log: %v", n, w.slowlog.Last(-1))
	}
}

// A key that others change all the time ends in an error.
func TestTooManyConflicts(t *testing.T) {
	w, e := engineWorld(t, false)
	p, n := w.connect(), 0
	e.Refuse = func(commit bool) error {
		if n++; commit {
			setBehind(e, "k", fmt.Sprint(1_790_000_700_000_000_000+n))
		}
		return nil
	}
	if got := p.do("SET", "k", soon); got != "-STOREDOWN others change the keys all the time\r\n" || n != 1+door.MostTries {
		t.Errorf("%q after %d steps", got, n)
	}
	e.Refuse = nil
	p.want("EXISTS k", ":1\r\n")
}

// A handler that takes long, as a script may, is not run again and again where its keys change each time.
func TestALongHandlerConflicts(t *testing.T) {
	w, e := engineWorld(t, false)
	p, steps := w.connect(), 0
	e.Refuse = func(commit bool) error {
		if steps++; commit {
			setBehind(e, "k", fmt.Sprint(1_790_000_700_000_000_000+steps))
		}
		return nil
	}
	still := w.Service.Clock
	w.Service.Clock = func() int64 { w.nowNS += int64(store.CommitWithin) + 1; return w.nowNS }
	got := p.do("SET", "k", soon)
	if got != "-STOREDOWN the command took so long that others may have changed its keys\r\n" || steps != 2 {
		t.Errorf("%q after %d steps", got, steps)
	}
	w.Service.Clock, e.Refuse = still, nil
	p.want("SET k "+soon, "+OK\r\n")
}

// What the engine says of a failure, to a command that reads and to one that writes, alone and in a transaction.
func TestFailuresOfAnEngine(t *testing.T) {
	for _, c := range []struct {
		err  error
		text string
	}{
		{&store.DownError{Cause: "it is away"}, "STOREDOWN it is away"},
		{&store.DownError{Cause: "it is slow", Sent: true}, "STOREDOWN it is slow; the call may have been counted"},
		{fmt.Errorf("open: %w", &store.DownError{Cause: "it is away"}), "STOREDOWN it is away"},
		{store.ErrBusy, "STOREDOWN too many calls wait for the engine"},
		{store.ErrCrossSlot, door.ErrCrossSlot},
		{store.ErrWrongType, errWrongType},
		{store.ErrFull, command.ErrOOM},
		{&store.EngineError{Text: "NOPERM this user may not"}, "NOPERM this user may not"},
		{errors.New("unknown command"), "ERR unknown command"},
	} {
		w, e := engineWorld(t, false)
		p := w.connect()
		onCommit := false
		e.Refuse = func(commit bool) error {
			if commit == onCommit {
				return c.err
			}
			return nil
		}
		for range 2 {
			text := "-" + c.text + "\r\n"
			if !onCommit { // then nothing was to be stored
				text = strings.Replace(text, "; the call may have been counted", "", 1)
				p.want("GET k", text)
			}
			p.want("SET k "+soon, text)
			p.want("MULTI", "+OK\r\n")
			p.want("SET k "+soon, "+QUEUED\r\n")
			p.want("CLIENT REPLY OFF", "+QUEUED\r\n")
			p.want("EXEC", text)
			p.want("EXEC", "-"+errExecNoMulti+"\r\n")
			onCommit = true
		}
		e.Refuse = nil
		p.want("EXISTS k", ":0\r\n")
		if got := door.StoreText(c.err); got != c.text {
			t.Errorf("%v: %q", c.err, got)
		}
		if n := stats.Of(w.Commands.Find([]byte("set"))).Failed.Load(); n != 2 {
			t.Errorf("%d failures are counted", n)
		}
		if left := w.Held.Bytes(); len(e.Opened) != e.Closed || left != 0 {
			t.Errorf("%d views, %d closed, %d bytes left", len(e.Opened), e.Closed, left)
		}
	}
}

// Who goes or is killed while the engine is asked leaves no view behind, at whatever step.
func TestClientsThatGoWhileTheEngineIsAsked(t *testing.T) {
	for _, command := range []string{"SET k " + soon, "DBSIZE"} {
		for step := range 3 {
			for _, kill := range []bool{false, true} {
				w, e := engineWorld(t, true)
				p, other := w.connect(), w.connect()
				p.send(command + "\r\nPING\r\n")
				for range min(step, e.Due()) {
					e.Answer()
					if step == 2 {
						p.Serve(nil)
					}
				}
				if kill {
					other.do("CLIENT", "KILL", "ID", fmt.Sprint(p.client.ID))
					p.Serve(nil)
				}
				p.Closed()
				for e.Due() > 0 {
					e.Answer()
				}
				if left := w.Held.Bytes(); len(e.Opened) != e.Closed || left != 0 {
					t.Errorf("%s, step %d: %d views, %d closed, %d bytes left", command, step, len(e.Opened), e.Closed, left)
				}
				other.want("PING", "+PONG\r\n")
			}
		}
	}
}

// WATCH is refused without asking the engine, and in MULTI for that.
func TestNoWatchOnAnEngine(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	p.want("WATCH k other", "-"+errWatchEngine+"\r\n")
	p.want("UNWATCH", "+OK\r\n")
	p.want("MULTI", "+OK\r\n")
	p.want("WATCH k", "-"+errWatchInMulti+"\r\n")
	p.want("PING", "+QUEUED\r\n")
	p.want("EXEC", "*1\r\n+PONG\r\n")
	if len(e.Opened) > 0 {
		t.Error("the engine was asked for keys")
	}
}

// Commands over all keys wait for the engine's masters, so they are refused where nothing may wait.
func TestWhatAnEngineCannotDo(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	for _, command := range []string{"SCAN 0", "KEYS *", "DBSIZE", "RANDOMKEY", "FLUSHALL", "FLUSHDB",
		"CL.POLICY SET a 1/1s", "CL.POLICY DEL a", "CL.RULE ADD DENY a", "CL.RULE DEL DENY a"} {
		words := strings.Fields(command)
		name := words[0]
		if strings.HasPrefix(name, "CL.") {
			name += "|" + words[1]
		}
		text := formatError(errScanInside, name)
		p.want("MULTI", "+OK\r\n")
		p.want(command, "-"+text+"\r\n")
		p.want("EXEC", "-"+errExecAbort+"\r\n")
		got := p.do("EVAL", "return redis.pcall('"+strings.Join(strings.Fields(command), "','")+"').err", "0")
		if !strings.Contains(got, text) {
			t.Errorf("%s: %q", command, got)
		}
	}
	setBehind(e, "k", soon)
	if got := p.do("EVAL", "return redis.pcall('GET', 'k').err", "1", "other"); !strings.Contains(got, formatError(errUndeclared, "k")) {
		t.Errorf("%q", got)
	}
	if got := p.do("EVAL", "return redis.pcall('CL.TAKE', 'k', '5/1m').err", "0"); !strings.Contains(got, formatError(errUndeclared, "k")) {
		t.Errorf("%q", got)
	}
	if got := p.do("EVAL", "return redis.call('GET', KEYS[1])", "1", "k"); got != "$19\r\n"+soon+"\r\n" {
		t.Errorf("%q", got)
	}
}

// Policies and rules are the engine's: a session that changes one waits until the engine has it, and finds it then. A client that has
// gone meanwhile changes nothing of that.
func TestSettingsOfAnEngine(t *testing.T) {
	w, e := engineWorld(t, true)
	p := w.connect()
	for _, c := range []struct{ command, reply string }{
		{"CL.POLICY SET api 5/1h", ":1\r\n"},
		{"CL.POLICY SET api 5/1h NX", ":0\r\n"},
		{"CL.RULE ADD DENY bad:* EX 60", ":1\r\n"},
		{"CL.RULE ADD DENY bad:* EX 60", ":0\r\n"},
		{"CL.RULE DEL DENY bad:*", ":1\r\n"},
		{"CL.RULE DEL DENY bad:*", ":0\r\n"},
		{"CL.POLICY DEL api", ":1\r\n"},
		{"CL.POLICY DEL api", ":0\r\n"},
	} {
		if got := p.send(sessiontest.Frame(strings.Fields(c.command)...) + "PING\r\n"); got != "" || e.Due() != 1 {
			t.Errorf("%s: %q before the engine has answered", c.command, got)
		}
		if got := answerAll(e, p); got != c.reply+"+PONG\r\n" {
			t.Errorf("%s: %q, want %q", c.command, got, c.reply)
		}
	}
	for _, command := range []string{
		"CL.POLICY SET api 5/x", "CL.POLICY SET api 5/1h NX XX", "CL.RULE ADD MAYBE a", "CL.RULE DEL DENY a EX 1",
	} {
		if got := p.send(sessiontest.Frame(strings.Fields(command)...)); !strings.HasPrefix(got, "-ERR ") || e.Due() != 0 {
			t.Errorf("%s: %q", command, got)
		}
	}
	gone := w.connect()
	gone.send(sessiontest.Frame("CL.POLICY", "SET", "left", "7/1h"))
	gone.Closed()
	e.Answer()
	p.want("CL.POLICY GET left", "$4\r\n7/1h\r\n")
}

// Of a key that celld has not written it is known that it is there, and what type it has.
func TestForeignKeys(t *testing.T) {
	w, e := engineWorld(t, false)
	setBehind(e, "foreign", soon)
	p := w.connect()
	for _, command := range []string{
		"GET foreign", "SET foreign " + soon, "HGETALL foreign", "OBJECT ENCODING foreign", "GETSET foreign 1",
	} {
		p.want(command, "-"+errWrongType+"\r\n")
	}
	p.want("TYPE foreign", "+list\r\n")
	p.do("MULTI")
	p.do("CL.TAKE", "foreign", "5/1m")
	p.do("EXISTS", "foreign")
	p.want("EXEC", "*2\r\n-"+errWrongType+"\r\n:1\r\n")
	p.want("CL.RESET foreign", ":1\r\n")
}

// What waits for the engine is bounded, and so are the keys of one view.
func TestBoundsOfVisits(t *testing.T) {
	w, e := engineWorld(t, true)
	w.Held.Most = 100 << 10
	p, q, r := w.connect(), w.connect(), w.connect()
	p.send("GET a\r\n")
	q.send("GET b\r\n")
	r.want("GET c", "-STOREDOWN too many calls wait for the engine\r\n")
	r.want("MULTI", "+OK\r\n")
	r.want("GET c", "+QUEUED\r\n")
	r.want("EXEC", "-STOREDOWN too many calls wait for the engine\r\n")
	p.Closed()
	answerAll(e, q)
	r.send("GET c\r\n")
	if got := answerAll(e, r); got != "$-1\r\n" {
		t.Errorf("%q", got)
	}
	if left := w.Held.Bytes(); left != 0 {
		t.Errorf("%d bytes left", left)
	}

	w, _ = engineWorld(t, false)
	p = w.connect()
	words := append([]string{"DEL"}, strings.Fields(strings.Repeat("k ", mostTxKeys))...)
	if got := p.do(words...); got != ":0\r\n" {
		t.Errorf("%q", got)
	}
	if got := p.do(append(words, "k")...); got != "-ERR with --store, a command, transaction or script has at most 1000 keys\r\n" {
		t.Errorf("%q", got)
	}
}

// Leases that end with a session end on the engine.
func TestBoundLeasesOnAnEngine(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	p.do("CL.TAKE", "k", "2/1m,algo=conc", "BIND")
	p.do("MULTI")
	p.do("CL.TAKE", "k", "2/1m,algo=conc", "BIND")
	if got := p.do("EXEC"); !strings.HasPrefix(got, "*1\r\n*8\r\n:0\r\n:2\r\n:0\r\n") {
		t.Errorf("%q", got)
	}
	p.Closed()
	if n := e.Len(w.nowNS); n != 0 {
		t.Errorf("%d keys have leases", n)
	}
}

// Commands on keys go by the engine's time, and others by celld's.
func TestTheEnginesTime(t *testing.T) {
	w, e := engineWorld(t, false)
	e.Now = func() int64 { return w.nowNS + 5_000_000_000 }
	p := w.connect()
	p.want("SET k "+soon+" EX 100", "+OK\r\n")
	p.want("EXPIRETIME k", ":1790000105\r\n")
	p.do("MULTI")
	p.do("TTL", "k")
	p.do("TIME")
	p.want("EXEC", "*2\r\n:100\r\n*2\r\n$10\r\n1790000005\r\n$1\r\n0\r\n")
	p.want("TIME", "*2\r\n$10\r\n1790000000\r\n$1\r\n0\r\n")
}

// A key transaction's time is that from its arrival on.
func TestTheTimeOfAVisit(t *testing.T) {
	w, e := engineWorld(t, true, "latency-monitor-threshold", "100")
	p := w.connect()
	p.send("GET k\r\n")
	w.sleepMS(250)
	if got := answerAll(e, p); got != "$-1\r\n" {
		t.Fatalf("%q", got)
	}
	if _, ns, _ := stats.Of(w.Commands.Find([]byte("get"))).Read(); ns != 250_000_000 {
		t.Errorf("%d ns", ns)
	}
	if entries := w.slowlog.Last(-1); len(entries) != 1 || entries[0].US != 250_000 || entries[0].Args[0] != "GET" {
		t.Errorf("%v", entries)
	}
	if events := w.Latency.Read(); len(events) != 1 || events[0].MostMs != 250 {
		t.Errorf("%v", events)
	}
}
