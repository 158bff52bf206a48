package persistence_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"celld/persistence"
	"celld/resp/wire"
	"celld/store"
)

// someStates are limits of every kind that a file can have.
func someStates() map[string]store.Value {
	all := map[string]store.Value{
		"":                          {TAT: uint64(t0 + 9*second)},
		"plain":                     {TAT: uint64(t0 + 9*second + 1)},
		"with an expiry":            {TAT: uint64(t0 + 9*second), ExpiryNS: t0 + 3*second},
		"without one":               {TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry},
		"binary\x00\r\n\xff$9\r\n":  {TAT: uint64(t0 + 1e18)},
		strings.Repeat("long", 99):  {TAT: uint64(t0 + 9*second)},
		strings.Repeat("x", 70_000): {TAT: uint64(t0 + 9*second)},
		"past int64":                {TAT: 1<<63 + 5},
	}
	for i := range 1000 {
		all[fmt.Sprint("key:", i)] = store.Value{TAT: uint64(t0 + second + int64(i)*1_234_567)}
	}
	return all
}

func (w *world) fillWith(all map[string]store.Value) {
	for key, st := range all {
		w.put(key, st)
	}
}

func TestRestart(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly, "always": always,
		"both": func(o *persistence.Options) { snapshots(o); always(o) }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, set).mustOpen()
			want := someStates()
			w.fillWith(want)
			w.reopen().expect(want)
			w.reopen().expect(want) // from what was written of what was read

			// TATs that pass meanwhile are not loaded.
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			w.pass(2 * second)
			for key, st := range want {
				if int64(st.TAT) <= w.now && st.TAT < 1<<63 || st.ExpiryNS > 0 && st.ExpiryNS <= w.now {
					delete(want, key)
				}
			}
			w.mustOpen().expect(want)
			if st := w.m.Status(); st.Loaded.Keys != int64(len(want)) || st.Loaded.Expired == 0 {
				t.Errorf("%+v", st.Loaded)
			}
		})
	}
}

// All that changes is in the append-only file within a second.
func TestEverySecond(t *testing.T) {
	w := newWorld(t, appendOnly).mustOpen()
	for range 100_000 {
		w.throttle("hot")
	}
	w.put("gone", store.Value{TAT: uint64(t0 + second)})
	w.store.Delete([]byte("gone"), t0)
	w.tick(second)
	w.settle()
	if text := w.read("appendonly.aof"); strings.Count(text, "SET") != 1 || strings.Count(text, "DEL") != 1 || len(text) > 250 {
		t.Errorf("100,000 calls are written as %q", text)
	}
	size := w.m.Status().AOFSize
	w.tick(second)
	w.settle()
	if st := w.m.Status(); st.AOFSize != size {
		t.Errorf("nothing changed, and %d bytes were written", st.AOFSize-size)
	}
	w.store.Flush()
	w.put("after", store.Value{TAT: uint64(t0 + 9*second)})
	w.tick(second)
	w.settle()
	want := w.states()
	w.crashed().expect(want)
}

// With always nothing is lost that a Commit has covered.
func TestAlways(t *testing.T) {
	w := newWorld(t, always).mustOpen()
	for i := range 50 {
		w.throttle(fmt.Sprint(i % 7))
		w.commit()
		w.crashed().expect(w.states())
	}
}

func TestRewrite(t *testing.T) {
	w := newWorld(t, appendOnly).mustOpen()
	w.fillWith(someStates())
	for i := range 20 {
		for key := range 1000 {
			w.put(fmt.Sprint("key:", key), store.Value{TAT: uint64(t0 + 9*second + int64(i))})
		}
		w.tick(second)
		w.settle()
	}
	before := w.m.Status().AOFSize
	if err := w.m.Rewrite(); err != nil {
		t.Fatal(err)
	}
	w.put("during", store.Value{TAT: uint64(t0 + 90*second)})
	w.store.Delete([]byte("key:1"), w.now)
	w.tick(second)
	w.settle()
	st := w.m.Status()
	if st.AOFSize > before/5 || st.AOFBaseSize == 0 || st.Rewrites != 1 || st.RewriteErr != nil {
		t.Errorf("rewriting %d bytes left %d: %+v", before, st.AOFSize, st)
	}
	w.put("after", store.Value{TAT: uint64(t0 + 90*second)})
	want := w.states()
	w.reopen().expect(want)
}

// The file is rewritten by itself when it has grown enough.
func TestAutoRewrite(t *testing.T) {
	w := newWorld(t, func(o *persistence.Options) {
		appendOnly(o)
		o.RewritePercentage = func() int64 { return 100 }
		o.RewriteMinSize = func() int64 { return 10_000 }
	}).mustOpen()
	for i := range 100 {
		for key := range 100 {
			w.put(fmt.Sprint(key), store.Value{TAT: uint64(t0 + 900*second + int64(i))})
		}
		w.tick(second)
		w.settle()
	}
	w.tick(0)
	w.settle()
	if st := w.m.Status(); st.Rewrites < 2 || st.AOFSize > 40_000 {
		t.Errorf("%d rewrites, %d bytes", st.Rewrites, st.AOFSize)
	}
	want := w.states()
	w.reopen().expect(want)
}

func TestSavePoints(t *testing.T) {
	w := newWorld(t, func(o *persistence.Options) {
		o.SavePoints = func() []persistence.SavePoint {
			points, _ := persistence.ParseSavePoints("60 3 10 100")
			return points
		}
	}).mustOpen()
	step := func(changes int, pass int64, saves int64) {
		t.Helper()
		for i := range changes {
			w.put(fmt.Sprint(i), store.Value{TAT: uint64(t0 + 9000*second)})
		}
		w.tick(pass)
		w.settle()
		if st := w.m.Status(); st.Saves != saves {
			t.Errorf("%d snapshots, want %d", st.Saves, saves)
		}
	}
	step(2, 3600*second, 0) // too few changes
	step(1, 0, 1)           // 3 in 60 s
	step(99, 10*second, 1)
	step(1, 0, 2) // 100 in 10 s
	step(0, 3600*second, 2)
	if st := w.m.Status(); st.ChangesSince != 0 || st.LastSaveNS != t0+3610*second {
		t.Errorf("%+v", st)
	}
}

// A clock that is set back keeps nobody waiting for longer than when the file was written.
func TestTheClockWasSetBack(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, set).mustOpen()
			w.put("limit", store.Value{TAT: uint64(t0 + 9*second)})
			w.put("with an expiry", store.Value{TAT: uint64(t0 + 9*second), ExpiryNS: t0 + 3*second})
			w.pass(second)
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			w.now -= 3600 * second
			w.mustOpen().expect(map[string]store.Value{
				"limit":          {TAT: uint64(w.now + 8*second)},
				"with an expiry": {TAT: uint64(w.now + 8*second), ExpiryNS: w.now + 2*second},
			})
		})
	}
}

// smallFile returns a world whose file is closed.
func smallFile(t *testing.T, set func(*persistence.Options)) *world {
	w := newWorld(t, set)
	w.writeSmallFile()
	return w
}

func (w *world) writeSmallFile() {
	w.t.Helper()
	w.mustOpen()
	w.put("a", store.Value{TAT: uint64(t0 + 9*second)})
	w.put("bb", store.Value{TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry})
	w.tick(second)
	w.settle()
	w.put("ccc", store.Value{TAT: uint64(t0 + 9*second), ExpiryNS: t0 + 5*second})
	if err := w.close(); err != nil {
		w.t.Fatal(err)
	}
}

// onlyFrom checks that all limits of the store are among those.
func (w *world) onlyFrom(want map[string]store.Value) {
	w.t.Helper()
	for key, st := range w.states() {
		if want[key] != st {
			w.t.Fatalf("%q is %+v, which was in no file", key, st)
		}
	}
}

func TestTornTailIsTold(t *testing.T) {
	w := smallFile(t, appendOnly)
	whole := w.read("appendonly.aof")
	w.mustOpen()
	states := w.states()
	w.m.Stop()
	for _, tail := range []string{"*5\r\n$3\r\nSE", "\x00\x00\x00", "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$2\r\nbb\r\n",
		"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$2\r\nbb\r\n*1\r\n$4\r\nEX"} {
		w.write("appendonly.aof", whole+tail)
		w.mustOpen().expect(states)
		if _, there := w.store.Get([]byte("bb"), store.Access{NowNS: w.now}); !there ||
			!strings.Contains(w.log.String(), fmt.Sprint("bytes_lost=", len(tail))) {
			t.Errorf("%q: %s", tail, w.log)
		}
		w.put("behind the cut", store.Value{TAT: uint64(t0 + 9*second)})
		want := w.states()
		w.reopen().expect(want)
		w.m.Stop()
	}
	w.write("appendonly.aof", whole+"*5\r\n$3\r\nSE")
	w.set = func(o *persistence.Options) { appendOnly(o); o.LoadTruncated = false }
	if err := w.open(); err == nil || !strings.Contains(err.Error(), "redis-check-aof --fix") {
		t.Errorf("aof-load-truncated no: %v", err)
	}
}

// Files of a Redis that holds more than limits.
func TestWhatIsNoLimitIsCounted(t *testing.T) {
	w := newWorld(t, appendOnly)
	at := t0 + 9*second
	command := func(words ...string) string { return string(wire.AppendCommand(nil, words...)) }
	w.write("appendonly.aof", command("SELECT", "0")+"#TS:1700000000\r\n"+
		command("set", "a", fmt.Sprint(at))+
		command("MULTI")+command("SET", "b", fmt.Sprint(at), "PXAT", fmt.Sprint(at/1e6+1))+command("EXEC")+
		command("SET", "name", "Alice")+command("SET", "a fraction", "-0.5")+command("LPUSH", "list", "x")+
		command("SELECT", "3")+command("SET", "elsewhere", fmt.Sprint(at))+command("SELECT", "0")+
		command("SET", "gone", fmt.Sprint(at))+command("DEL", "gone"))
	w.mustOpen().expect(map[string]store.Value{"a": {TAT: uint64(at), ExpiryNS: store.NoExpiry}, "b": {TAT: uint64(at)}})
	if got := w.m.Status().Loaded.OthersText(); got != "1 LPUSH, 1 database 3, 2 string" {
		t.Errorf("left out: %s", got)
	}
	want := w.states()
	w.reopen().expect(want)
}

func TestTheDirectoryMustBeThere(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly} {
		w := newWorld(t, set)
		w.dir = w.path("missing")
		if err := w.open(); err == nil || !strings.Contains(err.Error(), "--dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWorld(t, func(*persistence.Options) {})
	w.dir = w.path("missing")
	w.mustOpen()
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	w := newWorld(t, func(o *persistence.Options) { snapshots(o); appendOnly(o) }).mustOpen()
	w.fillWith(someStates())
	if err := w.m.Save(); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Rewrite(); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.reopen()
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 3 { // with that of the lock
		t.Errorf("%v, %v", entries, err)
	}
}
