package door_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp"
	"celld/resp/client"
	"celld/resp/command/limit"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/loglimit"
	"celld/resp/session/sessiontest"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

func words(text string) (list [][]byte) {
	for _, word := range strings.Fields(text) {
		list = append(list, []byte(word))
	}
	return list
}

// A command of a file changes what it says, waits for nobody and counts nowhere. What changes nothing, or is wrong, is an error.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	w.Want("CL.POLICY SET p 5/1h", ":1\r\n")
	replay := w.Door.Replay()
	for text, ok := range map[string]bool{
		"CL.TAKE k 5/1h COST 2": true, "cl.mtake 2 k 5/1h l 5/1h": true, "CL.THROTTLE t 1 1 60": true, "INCR n": true, "SET s 7": true,
		"CL.TAKE w 1/1h WAIT 5": true, "CL.TAKE k @p": true, "CL.POLICY SET q 1/1h": true, "EXPIRE s 100": true, "CL.GIVE l 5/1h 1": true,
		"GET s": false, "PING": false, "NONE k": false, "CL.TAKE k": false, "SET s x": false, "CL.TAKE k 5/1x": false, "CL.POLICY": false,
		"CL.POLICY NONE q": false, "CL.TAKE t 1/1h": false, "EVAL return 0": false,
	} {
		if text == "EXPIRE s 100" || text == "CL.GIVE l 5/1h 1" || text == "CL.TAKE t 1/1h" {
			continue // below, as they need what others make
		}
		if err := replay(words(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{"EXPIRE s 100": true, "CL.GIVE l 5/1h 1": true, "CL.TAKE t 1/1h": false} {
		if err := replay(words(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := replay(words("CL.TAKE w 1/1h WAIT 5")); err != nil {
		t.Errorf("a call that cannot pass: %v", err)
	}
	w.Want("CL.TAKE k 5/1h PEEK", "*7\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:2160000\r\n:0\r\n:0\r\n")
	w.Want("TTL s", ":100\r\n")
	w.Want("CL.TOP", "*0\r\n")
	w.Want("CL.POLICY GET q", "$4\r\n1/1h\r\n")
	if got := w.Do("INFO", "commandstats"); strings.Contains(got, "cmdstat_incr:") {
		t.Errorf("%q", got)
	}
}

// What waits for an engine is bounded.
func TestHeld(t *testing.T) {
	h := door.Held{Most: 10}
	if h.Hold(6) != nil || h.Hold(5) != store.ErrBusy || h.Hold(4) != nil || h.Bytes() != 10 {
		t.Errorf("%d bytes", h.Bytes())
	}
	if h.Let(6); h.Bytes() != 4 || h.Hold(7) != store.ErrBusy {
		t.Errorf("%d bytes", h.Bytes())
	}
}

// The store's errors have the texts that callers of every door are told, and wrap what the store said.
func TestErrors(t *testing.T) {
	away := &store.DownError{Cause: "it is away"}
	for text, cause := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.":                                    store.ErrFull,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                          store.ErrWrongType,
		"ERR too many calls wait already (--max-waiters)":                                            store.ErrTooManyWaiters,
		"ERR two limits differ only in count or burst: one needs a name, such as 100/1m,name=tokens": store.ErrTwoLimits,
		"NOPOLICY the policy was removed while the call waited":                                      policy.ErrNoPolicy,
		"UNBLOCKED client unblocked via CLIENT UNBLOCK":                                              client.ErrUnblocked,
		"STOREDOWN it is away":                                 away,
		"STOREDOWN it is away; the call may have been counted": &store.DownError{Cause: "it is away", Sent: true},
		"BUSY of the engine":                                   &store.EngineError{Text: "BUSY of the engine"},
		"ERR with --store, FLUSHALL and FLUSHDB need --store-prefix, as the engine may hold others' keys": store.ErrNoPrefix,
		"ERR nothing of ours": errors.New("nothing of ours"),
	} {
		err := door.ErrorOf(cause)
		of := (*door.CallError)(nil)
		if err.Error() != text || !errors.Is(err, cause) || !errors.As(err, &of) || of.Code() != strings.Fields(text)[0] {
			t.Errorf("%v: %q", cause, err)
		}
	}
	if !strings.HasPrefix(door.StoreText(store.ErrCrossSlot), "CROSSSLOT ") ||
		!strings.HasPrefix(door.StoreText(store.ErrBusy), "STOREDOWN ") {
		t.Error("an engine's keys, or one that is busy")
	}
	if sent := (&store.DownError{Cause: "x", Sent: true}); door.NotSent(sent).Error() != (&store.DownError{Cause: "x"}).Error() ||
		door.NotSent(store.ErrFull) != store.ErrFull {
		t.Error("what was not sent")
	}
	if door.Misconf(nil) != nil || door.Misconf(away).Error() != "MISCONF Errors writing to the AOF file: it is away" {
		t.Error("the disk")
	}
}

// on is a world with other parts.
func on(t *testing.T, o resp.Options, settings ...string) *world {
	t.Helper()
	w := &world{nowNS: sessiontest.StartNS}
	o.Clock = func() int64 { return w.nowNS }
	o.Config = sessiontest.Settings(t, settings...)
	if o.Store == nil {
		o.Store = memory.New(memory.Options{Shards: 1, Now: o.Clock})
	}
	if e, ok := o.Engine.(engine); ok {
		e.Store, e.Now = memory.New(memory.Options{Shards: 1, Policies: o.Store.Set, Now: o.Clock}), o.Clock
	}
	w.Server = resp.NewServer(o)
	w.Peer = sessiontest.Connect(t, w.Sessions())
	return w
}

type engine struct{ *sessiontest.Engine }

func (engine) Close() {}

// onDisk is a server whose replies wait for its disk. Its clock stands still.
func onDisk(t *testing.T) (*world, *sessiontest.Disk) {
	t.Helper()
	files, clock := &sessiontest.Disk{}, func() int64 { return sessiontest.StartNS }
	cfg := sessiontest.Settings(t, "dir", t.TempDir())
	keys, disk := sessiontest.Keep(memory.Options{Shards: 1, Now: clock}, cfg, files, clock, slog.New(slog.DiscardHandler))
	w := on(t, resp.Options{Store: keys, Persistence: disk}, "dir", t.TempDir())
	t.Cleanup(disk.Stop)
	if err := disk.Start(nil, nil); err != nil {
		t.Fatal(err)
	}
	w.Door.Gate.Set(gate.Loading, false)
	return w, files
}

// Where replies wait for the disk, those within the process do, too, if something changes. What the disk refuses is an error.
func TestNeedsTheDisk(t *testing.T) {
	w, files := onDisk(t)
	w.Want("CONFIG SET latency-monitor-threshold 1", "+OK\r\n")
	syncs := func(do func() error) (more bool) {
		before := files.Syncs.Load()
		if err := do(); err != nil {
			t.Error(err)
		}
		return files.Syncs.Load() > before
	}
	var lease int64
	if !w.Door.Waits() || !syncs(func() error {
		return w.Door.Take(t.Context(), inside, []door.Ask{ask("k", "5/1h", door.Option{Name: "LEASE", N: 5000})},
			func(t *door.Taken, _ error) { lease = t.Lease })
	}) {
		t.Error("a take does not wait for the disk")
	}
	if !syncs(func() error {
		did, err := w.Door.ChangeLease(inside, change("cl.settle", lease, 1))
		if !did {
			t.Error("no lease")
		}
		return err
	}) {
		t.Error("the end of a lease does not wait for the disk")
	}
	if syncs(func() error { _, err := w.Door.Show(inside, "k"); return err }) ||
		syncs(func() error { _, err := w.told(t.Context(), ask("k", "5/1h", door.Option{Name: "PEEK"})); return err }) {
		t.Error("who only looks waits for the disk")
	}
	w.Want("LATENCY LATEST", "*0\r\n") // the clock stands still
	files.Full.Store(true)
	for range 2 { // the first finds that it is full
		if _, err := w.told(t.Context(), ask("k", "5/1h")); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
			t.Errorf("a take: %v", err)
		}
	}
	if _, err := w.Door.ChangeLease(inside, change("cl.release", 1, 0)); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("the end of a lease: %v", err)
	}
	if err := w.Door.Decide([]store.TakeRequest{{}}, nil); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
		t.Errorf("Envoy's: %v", err)
	}
	if _, err := w.Door.Show(inside, "k"); err != nil || !w.Door.Gate.Has(gate.Refusing) {
		t.Error(err)
	}
}

// Neither a call within the process that waits, nor one that has panicked, holds up the writes of others.
func TestNobodyHoldsUpWrites(t *testing.T) {
	w, _ := onDisk(t)
	take := func(ctx context.Context, key string, options ...door.Option) error {
		_, err := w.told(ctx, ask(key, "1/10s", options...))
		return err
	}
	written := func(key, meanwhile string) {
		done := make(chan error, 1)
		go func() { done <- take(t.Context(), key) }()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second): // it takes some microseconds
			t.Fatalf("%s: another call is not written", meanwhile)
		}
	}
	written("k", "at first")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- take(ctx, "k", door.Option{Name: "WAIT", N: 20_000}) }()
	celldtest.Eventually(t, "the call waits", func() bool {
		callers, _ := w.Door.Port.Waiting()
		return callers == 1
	})
	written("l", "while a call waits")
	leave()
	if err := <-left; err == nil {
		t.Error("it does not say that its caller has gone")
	}
	l, err := cell.ParseLimit("2/1h")
	if err != nil {
		t.Fatal(err)
	}
	one := store.TakeRequest{Calls: []store.Call{{Key: []byte("m"), Limit: &l}}, TakeOptions: store.TakeOptions{Cost: 1}}
	if err := w.Door.Decide([]store.TakeRequest{one}, func(int) door.Verdict { panic("of a caller") }); !errors.Is(err, door.ErrPanicked) {
		t.Errorf("after a panic: %v", err)
	}
	written("n", "after a panic")
}

// An engine's keys are read, changed and stored, again where others have changed them meanwhile.
func TestOnAnEngine(t *testing.T) {
	e := engine{&sessiontest.Engine{}}
	w := on(t, resp.Options{Engine: e})
	var lease int64
	err := w.Door.Take(t.Context(), inside, []door.Ask{ask("k", "5/1h", door.Option{Name: "LEASE", N: 5000})},
		func(t *door.Taken, _ error) { lease = t.Lease })
	if err != nil || lease == 0 || !w.Door.Waits() {
		t.Fatal(lease, err)
	}
	if all, err := w.Door.Show(inside, "k"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	conflicts := 0
	e.Refuse = func(commit bool) error { return nil }
	if did, err := w.Door.ChangeLease(inside, change("cl.renew", lease, 9000)); !did || err != nil {
		t.Errorf("%v, %v", did, err)
	}
	if _, err := w.Door.ChangeLease(inside, change("cl.renew", lease, -1)); err == nil || !strings.HasPrefix(err.Error(), "ERR ") {
		t.Errorf("a wrong time: %v", err)
	}
	e.Refuse = func(commit bool) error {
		if conflicts++; commit {
			return &store.DownError{Cause: "it has gone", Sent: true}
		}
		return nil
	}
	if _, err := w.Door.ChangeLease(inside, change("cl.release", lease, 0)); err == nil ||
		err.Error() != "STOREDOWN it has gone; the call may have been counted" || conflicts != 2 {
		t.Errorf("a commit that fails: %v after %d", err, conflicts)
	}
	e.Refuse = func(bool) error { return &store.DownError{Cause: "it is away", Sent: true} }
	if _, err := w.Door.ChangeLease(inside, change("cl.release", lease, 0)); err == nil || err.Error() != "STOREDOWN it is away" {
		t.Errorf("keys that cannot be read: %v", err)
	}
	e.Refuse = nil
	w.Door.Held.Most = door.ViewBytes - 1
	if _, err := w.Door.Show(inside, "k"); err == nil || !strings.HasPrefix(err.Error(), "STOREDOWN ") || w.Door.Held.Bytes() != 0 {
		t.Errorf("too much waits: %v", err)
	}
	w.Door.Held.Most = 1 << 20
	if did, err := w.Door.ChangeLease(inside, change("cl.release", lease, 0)); !did || err != nil || w.Door.Held.Bytes() != 0 {
		t.Errorf("%v, %v, and %d bytes are held", did, err, w.Door.Held.Bytes())
	}
}

// Errors, denials and panics are counted, and logged where they are asked for.
func TestCountsAndLog(t *testing.T) {
	var log bytes.Buffer
	level := &slog.LevelVar{}
	exits := 0
	w := on(t, resp.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})), Exit: func(int) { exits++ }})
	failed, errs := w.Door.Stats.ErrorReplies.Load(), func() string { return w.Do("INFO", "errorstats") }
	if _, err := w.told(t.Context(), ask("k", "5/1x")); err == nil {
		t.Error("no error")
	}
	if got := errs(); w.Door.Stats.ErrorReplies.Load() != failed+1 || !strings.Contains(got, "errorstat_ERR:count=1") {
		t.Errorf("%d, %q", w.Door.Stats.ErrorReplies.Load()-failed, got)
	}
	w.Want("ACL SETUSER default resetkeys ~k* -cl.show", "+OK\r\n")
	stranger := door.Caller{Addr: "192.0.2.1:7"}
	for range 2 {
		_, keys := w.Door.Throttle(stranger, "other", [4]int64{1, 1, 1, 1})
		_, command := w.Door.Show(stranger, "k")
		if keys == nil || command == nil || w.Door.Refused(stranger, "cl.show") == nil || w.Door.Refused(stranger, "cl.take") != nil {
			t.Error(keys, command)
		}
		if level.Level() != loglimit.Verbose && strings.Contains(log.String(), "refused") {
			t.Errorf("without being asked: %s", log.String())
		}
		level.Set(loglimit.Verbose)
	}
	if n := w.Door.Stats.DeniedKeys.Load(); n != 2 {
		t.Errorf("%d denied keys", n)
	}
	if n := w.Door.Stats.DeniedCommands.Load(); n != 4 {
		t.Errorf("%d denied commands", n)
	}
	if got := log.String(); !strings.Contains(got, "client=192.0.2.1:7") || !strings.Contains(got, "command=cl.show") {
		t.Error(got)
	}
	func() {
		defer w.Door.Survive("a test", "about", "it")
		panic("at the disco")
	}()
	if got := log.String(); w.Door.Stats.Panics.Load() != 1 || !strings.Contains(got, "at the disco") || exits != 0 {
		t.Errorf("%d panics: %s", w.Door.Stats.Panics.Load(), got)
	}
	if w.Door.Fatal("the end"); exits != 1 {
		t.Error("it goes on")
	}
	if w.Door.MaxWait() != time.Minute || w.Door.Policy("none") != nil || w.Door.Waits() {
		t.Error(w.Door.MaxWait())
	}
	w.Door.Gate.Set(gate.Loading, true)
	if !w.Door.Loading() {
		t.Error("it loads")
	}
}

// Of what several ask, each counts once in CL.STATS, and what is given back is shown to monitors.
func TestTakesCount(t *testing.T) {
	w := newWorld(t)
	monitor := sessiontest.Connect(t, w.Sessions())
	monitor.Want("MONITOR", "+OK\r\n")
	got, err := w.told(t.Context(), ask("k", "2/1h"), ask("k", "2/1h"), ask("k", "2/1h"), ask("k", "2/1h", door.Option{Name: "GIVE", N: 1}))
	if got != "1 1; 1 0; 0 0; -1 0; " || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	w.Want("CL.TOP", "*1\r\n*2\r\n$1\r\nk\r\n:1\r\n")
	if stats := w.Do("CL.STATS", "literals"); !strings.Contains(stats, "allowed\r\n:2\r\n$7\r\nlimited\r\n:1\r\n") {
		t.Errorf("%q", stats)
	}
	if _, err := w.Door.Throttle(inside, "t", [4]int64{2, 1, 60, 1}); err != nil {
		t.Error(err)
	}
	commands := w.Do("INFO", "commandstats", "stats")
	if !strings.Contains(commands, "cmdstat_cl.throttle:calls=1,") || !strings.Contains(commands, "cmdstat_cl.give:calls=1,") ||
		!strings.Contains(commands, "cmdstat_cl.take:calls=3,") || !strings.Contains(commands, "\r\ntotal_commands_processed:8\r\n") {
		t.Errorf("%q", commands)
	}
	if seen := monitor.Say(""); !strings.Contains(seen, `"CL.GIVE" "k" "2/1h" "1"`) {
		t.Errorf("%q", seen)
	}
}

func change(command string, id, n int64) limit.LeaseChange {
	return limit.LeaseChange{Command: command, Key: []byte("k"), ID: id, N: n}
}

// What another protocol decides counts by its verdicts, and what closes the server refuses it.
func TestDecide(t *testing.T) {
	t.Parallel()
	exits := 0
	w := on(t, resp.Options{Exit: func(int) { exits++ }})
	l, err := cell.ParseLimit("2/1h,algo=window")
	if err != nil {
		t.Fatal(err)
	}
	requests := func() []store.TakeRequest {
		one := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: &l}}, TakeOptions: store.TakeOptions{Cost: 1}}
		return []store.TakeRequest{one, one}
	}
	for range 3 { // by the same desk
		r := requests()
		err := w.Door.Decide(r, func(i int) door.Verdict { return door.Verdict{Limited: r[i].Taken.Limited} })
		if err != nil || r[0].Err != nil {
			t.Error(err, r[0].Err)
		}
	}
	if stats := w.Do("CL.STATS", "literals"); !strings.Contains(stats, "allowed\r\n:2\r\n$7\r\nlimited\r\n:4\r\n") {
		t.Errorf("%q", stats)
	}
	w.Door.Gate.Set(gate.Loading, true)
	if err := w.Door.Decide(requests(), nil); err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
		t.Errorf("while the server reads its files: %v", err)
	}
	w.Door.Gate.Set(gate.Loading, false)
	err = w.Door.Decide(requests(), func(int) door.Verdict { panic("of a caller") })
	if !errors.Is(err, door.ErrPanicked) {
		t.Errorf("after a panic: %v", err)
	}
	if exits != 0 {
		t.Error("a panic of a caller ends the process")
	}
	limits := make([]string, store.MaxLimits+1)
	for i := range limits {
		limits[i] = fmt.Sprintf("%d/1h,algo=window,name=n%d", i+1, i)
	}
	w = newWorld(t)
	for i := 0; i < len(limits); i += 100 {
		_, err = w.Door.TakeOne(t.Context(), inside, door.Ask{Key: "many", Limits: limits[i:min(i+100, len(limits))]})
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(store.MaxLimits)) {
		t.Errorf("more limits under a key than it may have: %v", err)
	}
	failed := w.Door.Stats.FailedHandshakes.Load()
	if w.Door.HTTPHandshakeFailed("why"); w.Door.Stats.FailedHandshakes.Load() != failed+1 {
		t.Error("a handshake that failed is not counted")
	}
}
