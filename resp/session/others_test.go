package session

import (
	"errors"
	"strings"
	"testing"

	"celld/cell"
	"celld/persistence/dir"
	"celld/resp/command/decide"
	"celld/resp/decisions"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
	"celld/store"
)

// callsOf reads "key limit [key limit ...]", where a limit may be @policy.
func (w *world) callsOf(text string) (calls []store.Call) {
	words := strings.Fields(text)
	for i := 0; i < len(words); i += 2 {
		if name, isPolicy := strings.CutPrefix(words[i+1], "@"); isPolicy {
			for _, l := range w.Store.Policy([]byte(name)).Limits {
				calls = append(calls, store.CallOf([]byte(words[i]), l))
			}
			continue
		}
		l, err := cell.ParseLimit(words[i+1])
		if err != nil {
			w.t.Fatal(err)
		}
		calls = append(calls, store.Call{Key: []byte(words[i]), Limit: &l})
	}
	return calls
}

// TestMonitorsCanTypeIt: what a monitor sees of a request does the same when somebody types it.
func TestMonitorsCanTypeIt(t *testing.T) {
	t.Parallel()
	const counter = "9007199254740991/1m,algo=window,align=clock"
	for _, of := range []struct {
		calls string
		cost  int64
		mode  cell.Mode
		want  string
	}{
		{"k " + counter, 3, cell.Force, "CL.TAKE k " + counter + " COST 3 FORCE"},
		{"k 5/1m", 3, cell.Take, "CL.TAKE k 5/1m COST 3"},
		{"k 5/1m", 3, cell.Peek, "CL.TAKE k 5/1m COST 3 PEEK"},
		{"k 5/1m", 0, cell.Peek, "CL.TAKE k 5/1m COST 0 PEEK"},
		{"k @gold", 2, cell.Take, "CL.TAKE k @gold COST 2"},
		{"k 5/1m", -2, cell.Take, "CL.GIVE k 5/1m 2"},
		{"k @gold", -2, cell.Take, "CL.GIVE k @gold 2"},
		{"k 5/1m l 6/1m,algo=slide", 2, cell.Take, "CL.MTAKE 2 k 5/1m l 6/1m,algo=slide COST 2"},
		{"k 5/1m k 5/1m", 2, cell.Take, "CL.MTAKE 2 k 5/1m k 5/1m COST 2"},
		{"k @gold l 5/1m", 2, cell.Take, "CL.MTAKE 2 k @gold l 5/1m COST 2"},
		{"k 5/1m l @gold m 6/1m,shadow", 2, cell.Take, "CL.MTAKE 3 k 5/1m l @gold m 6/1m,shadow COST 2"},
		{"k @gold l @free", 9, cell.Peek, "CL.MTAKE 2 k @gold l @free COST 9 PEEK"},
	} {
		w := newWorld(t)
		p, monitor := w.connect(), w.connect()
		state := func() string { return p.do("HGETALL", "k") + p.do("HGETALL", "l") + p.do("HGETALL", "m") }
		prepare := func() {
			p.do("FLUSHALL")
			p.do("CL.POLICY", "SET", "gold", "10/1m", "100/1h")
			p.do("CL.POLICY", "SET", "free", "3/1m")
			p.do("CL.TAKE", "k", "5/1m", "COST", "2")
			p.do("CL.TAKE", "k", "@gold", "COST", "3")
		}
		prepare()
		monitor.do("MONITOR")
		requests := []store.TakeRequest{{Calls: w.callsOf(of.calls), TakeOptions: store.TakeOptions{Cost: of.cost, Mode: of.mode}}}
		if err := w.Decide(requests, func(int) decide.Verdict { return decide.Verdict{} }); err != nil || requests[0].Err != nil {
			t.Fatalf("%s: %v, %v", of.want, err, requests[0].Err)
		}
		seen := monitor.send("") // lines that wait come with its next turn
		after := state()
		want := `"` + strings.ReplaceAll(of.want, " ", `" "`) + `"`
		if !strings.Contains(seen, "[0 inside] "+want+"\r\n") {
			t.Errorf("a monitor sees %q, want %s", seen, want)
		}
		prepare()
		if reply := p.do(strings.Fields(of.want)...); strings.HasPrefix(reply, "-") {
			t.Errorf("%s: %q", of.want, reply)
		}
		if got := state(); got != after {
			t.Errorf("%s: typed, it leaves\n%q, and before\n%q", of.want, got, after)
		}
	}
}

// TestMonitorsSeeEachCost: where limits without names have costs that differ, nobody can type the command.
func TestMonitorsSeeEachCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	monitor, p := w.connect(), w.connect()
	p.do("CL.POLICY", "SET", "gold", "10/1m", "100/1h")
	monitor.do("MONITOR")
	r := store.TakeRequest{Calls: w.callsOf("k @gold l 900/1m m 5/1m"), TakeOptions: store.TakeOptions{Cost: 1}}
	r.Calls[2].Own, r.Calls[2].Cost = true, 800
	if err := w.Decide([]store.TakeRequest{r}, passes); err != nil {
		t.Fatal(err)
	}
	want := `"CL.MTAKE" "3" "k" "@gold" "l" "900/1m" "m" "5/1m" "COST" "1" "800" "1"`
	if got := monitor.send(""); !strings.Contains(got, want) {
		t.Errorf("a monitor sees %q, want %s", got, want)
	}
	r = store.TakeRequest{Calls: w.callsOf("k 60/1m k 90000/1m,name=tokens l 9/1h,name=tokens"), TakeOptions: store.TakeOptions{Cost: 2}}
	for i := range r.Calls[1:] {
		r.Calls[1+i].Own, r.Calls[1+i].Cost = true, 1500
	}
	if err := w.Decide([]store.TakeRequest{r}, passes); err != nil {
		t.Fatal(err)
	}
	want = `"CL.MTAKE" "3" "k" "60/1m" "k" "90000/1m,name=tokens" "l" "9/1h,name=tokens" "COST" "2" "COST" "1500" "OF" "tokens"`
	if got := monitor.send(""); !strings.Contains(got, want) {
		t.Errorf("a monitor sees %q, want %s", got, want)
	}
}

// passes says that a call passes.
func passes(int) decide.Verdict { return decide.Verdict{} }

func TestDecideCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.connect()
	p.do("CL.RULE", "ADD", "DENY", "bad*")
	take := func(key string, cost int64, mode cell.Mode) store.TakeRequest {
		limit := " 5/1m"
		if key == "k" {
			limit += ",block=1ms"
		}
		return store.TakeRequest{Calls: w.callsOf(key + limit), TakeOptions: store.TakeOptions{Cost: cost, Mode: mode}}
	}
	requests := []store.TakeRequest{
		take("k", 1, cell.Take), take("k", 9, cell.Take), take("bad", 1, cell.Take), take("k", 1, cell.Force), take("k", 1, cell.Force),
		take("k", 0, cell.Peek), take("k", -1, cell.Take), take("k", cell.MaxCost, cell.Force), // these do not count
	}
	verdicts := []decide.Verdict{{}, {Limited: true}, {Limited: true}, {Shadow: true}, {Limited: true, Shadow: true}}
	if err := w.Decide(requests, func(i int) decide.Verdict { return verdicts[i] }); err != nil {
		t.Fatal(err)
	}
	want := decisions.Counts{decisions.EnvoyAllowed: 3, decisions.EnvoyLimited: 2, decisions.RuleDenied: 1, decisions.ShadowAllowed: 1,
		decisions.ShadowLimited: 1, decisions.Blocked: 1}
	if got := w.Decisions.Sum(); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
	if got := requests[7].Err; got != store.ErrTooMuch {
		t.Errorf("too much is %v", got)
	}
	if got := p.do("CL.TOP", "10"); !strings.Contains(got, "bad") || !strings.Contains(got, "$1\r\nk\r\n") {
		t.Errorf("the keys that are denied most: %q", got)
	}
}

// TestDecideSurvivesAPanic: nobody waits for the disk after that.
func TestDecideSurvivesAPanic(t *testing.T) {
	t.Parallel()
	for _, disk := range []dir.FileSystem{nil, &sessiontest.Disk{}} {
		w := newWorldOn(t, disk, t.TempDir())
		p := w.connect()
		requests := []store.TakeRequest{{Calls: w.callsOf("k 5/1m"), TakeOptions: store.TakeOptions{Cost: 1, Mode: cell.Take}}}
		var failed *door.CallError
		err := w.Decide(requests, func(int) decide.Verdict { panic("inside") })
		if !errors.As(err, &failed) || !errors.Is(err, door.ErrPanicked) {
			t.Errorf("got %v, want that it panicked", err)
		}
		if err := w.Decide(requests, passes); err != nil {
			t.Errorf("the next call: %v", err)
		}
		p.want("SET a 1", "+OK\r\n")
	}
}

// TestDecideWaitsForTheDisk: what is taken is on the disk when Decide returns; what the disk refuses is an error, and does not count. Who
// only looks waits for nothing.
func TestDecideWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.Persist.Start(nil, nil); err != nil {
		t.Fatal(err)
	}
	ask := func(cost int64, mode cell.Mode) error {
		return w.Decide([]store.TakeRequest{{Calls: w.callsOf("k 9/1h"), TakeOptions: store.TakeOptions{Cost: cost, Mode: mode}}}, passes)
	}
	syncs := disk.Syncs.Load()
	if err := ask(1, cell.Force); err != nil || disk.Syncs.Load() != syncs+1 {
		t.Errorf("%v, %d syncs, want 1", err, disk.Syncs.Load()-syncs)
	}
	if err := ask(0, cell.Peek); err != nil || disk.Syncs.Load() != syncs+1 {
		t.Errorf("who looks: %v, %d syncs", err, disk.Syncs.Load()-syncs)
	}
	disk.Full.Store(true)
	if err := ask(1, cell.Force); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("a full disk: %v", err)
	}
	if n := w.Decisions.Sum(); n[decisions.EnvoyAllowed] != 1 {
		t.Errorf("%d decisions count, want 1", n[decisions.EnvoyAllowed])
	}
}
