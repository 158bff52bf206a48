package door_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
	"celld/store"
	"celld/store/memory"
	"celld/store/storetest"
)

// world is a server with a clock that tests turn, and a client of it.
type world struct {
	*resp.Server
	*sessiontest.Peer
	nowNS int64
}

func newWorld(t testing.TB) *world {
	w := &world{nowNS: sessiontest.StartNS}
	clock := func() int64 { return w.nowNS }
	keys := memory.New(memory.Options{Shards: 1, Now: clock})
	w.Server = resp.NewServer(resp.Options{Config: sessiontest.Settings(t), Store: keys, Clock: clock})
	w.Peer = sessiontest.Connect(t, w.Sessions())
	return w
}

var inside = door.Caller{Addr: "192.0.2.1:7", Trusted: true}

// ask makes an door.Ask of key limit [option value]...
func ask(key, limit string, options ...door.Option) door.Ask {
	return door.Ask{Key: key, Limits: []string{limit}, Options: options}
}

// told is how calls were answered: what was granted, or the error.
func (w *world) told(ctx context.Context, asks ...door.Ask) (told string, err error) {
	err = w.Door.Take(ctx, inside, asks, func(t *door.Taken, err error) {
		if err != nil {
			told += fmt.Sprintf("%v; ", err)
		} else {
			told += fmt.Sprintf("%d %d; ", t.Granted, t.Limits[t.Binding].Remaining)
		}
	})
	return told, err
}

// Commands within the process are those of a client that may do everything: monitors see them, and each take is told of in its order. If
// one take is not well formed, none is taken.
func TestDo(t *testing.T) {
	w := newWorld(t)
	w.Want("CONFIG SET requirepass secret", "+OK\r\n")
	w.Want("CL.POLICY SET two 9/1h 5/1m", ":1\r\n")
	w.Want("MONITOR", "+OK\r\n")
	cost := func(n int64) door.Option { return door.Option{Name: "COST", N: n} }
	got, err := w.told(t.Context(), ask("k", "5/1h", cost(2)), ask("k", "5/1h", cost(9)),
		ask("k", "5/1h", door.Option{Name: "UPTO"}, cost(9)),
		door.Ask{Keys: []string{"k", "l"}, Limits: []string{"5/1h", "5/1m"}, Options: []door.Option{{Name: "PEEK"}}}, ask("l", "@two"),
		ask("k", "5/1h", door.Option{Name: "FORCE"}, cost(cell.MaxCost)),
		ask("m", "9/1h", door.Option{Name: "LEASE", N: 500}, door.Option{Name: "ID", Text: "a"}),
		ask("n", "9/1h", door.Option{Name: "RESERVE", N: 7}))
	if want := "2 3; 0 3; 3 0; 0 0; 1 4; ERR nothing was taken: a limit counts to 9007199254740991, and flows back in 292 years at most; " +
		"1 8; 1 8; "; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	seen := w.Say("")
	for _, line := range []string{
		`"CL.TAKE" "k" "5/1h" "COST" "2"`, `"CL.TAKE" "k" "5/1h" "COST" "9" "UPTO"`,
		`"CL.MTAKE" "2" "k" "5/1h" "l" "5/1m" "COST" "1" "PEEK"`,
		`"CL.TAKE" "l" "@two" "COST" "1"`, `"CL.TAKE" "m" "9/1h" "COST" "1" "LEASE" "500" "ID" "a"`,
		`"CL.TAKE" "n" "9/1h" "COST" "1" "RESERVE" "7"`,
	} {
		if !strings.Contains(seen, "[0 192.0.2.1:7] "+line+"\r\n") {
			t.Errorf("no %s in %q", line, seen)
		}
	}
	wrong := (*door.MisreadError)(nil)
	got, err = w.told(t.Context(), ask("k", "5/1h"), door.Ask{Key: "k", Limits: []string{"5/1h", "nonsense"}})
	if !errors.As(err, &wrong) || wrong.Ask != 1 || wrong.Limit != 1 || got != "" || !strings.HasPrefix(err.Error(), "ERR invalid limit") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err = w.told(t.Context(), ask("k", "5/1h", cost(-1))); !errors.As(err, &wrong) || wrong.Limit != -1 || wrong.Ask != 0 {
		t.Errorf("a negative cost: %v", err)
	}
	other := sessiontest.Connect(t, w.Sessions())
	other.Want("AUTH secret", "+OK\r\n")
	if got := other.Do("INFO", "commandstats"); !strings.Contains(got, "cmdstat_cl.take:calls=9,") ||
		!strings.Contains(got, "cmdstat_cl.mtake:calls=1,") ||
		!strings.Contains(got, "rejected_calls=0,failed_calls=3\r\n") {
		t.Errorf("%q", got)
	}
	if got, err := w.told(t.Context(), ask("k", "5/1h", door.Option{Name: "GIVE", N: 1})); got != "-1 0; " || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A caller who is not trusted has the rights of the user default.
func TestTakeByTheDefaultUser(t *testing.T) {
	w := newWorld(t)
	take := func(a door.Ask) string {
		told := ""
		err := w.Door.Take(t.Context(), door.Caller{Addr: "192.0.2.1:7"}, []door.Ask{a}, func(t *door.Taken, err error) {
			if told = fmt.Sprint(err); err == nil {
				told = fmt.Sprint(t.Granted)
			}
		})
		if err != nil {
			return err.Error()
		}
		return told
	}
	if got := take(ask("k", "5/1h")); got != "1" {
		t.Error(got)
	}
	w.Want("ACL SETUSER default resetkeys ~k*", "+OK\r\n")
	if got := take(ask("k", "5/1h")); got != "1" {
		t.Error(got)
	}
	got := take(door.Ask{Keys: []string{"k", "other"}, Limits: []string{"5/1h", "5/1h"}})
	if !strings.HasPrefix(got, "NOPERM this user has no permissions to access one of the keys") {
		t.Error(got)
	}
	several := func(asks ...door.Ask) (told string) {
		err := w.Door.Take(t.Context(), door.Caller{Addr: "192.0.2.1:7"}, asks, func(t *door.Taken, err error) {
			if err == nil {
				err = errors.New("taken")
			}
			told += strings.SplitN(err.Error(), " ", 2)[0] + " "
		})
		return fmt.Sprint(told, err)
	}
	both := door.Ask{Keys: []string{"k", "k2"}, Limits: []string{"5/1h", "5/1h"}}
	if got := several(ask("k3", "5/1h"), ask("other", "5/1h"), both, ask("k4", "5/1h")); got != "taken NOPERM taken taken <nil>" {
		t.Errorf("a key of others among several: %s", got)
	}
	w.Door.Gate.Set(gate.Loading, true) // as by RESP, who has no right learns nothing of the server
	for key, want := range map[string]string{"other": "NOPERM ", "k": "LOADING "} {
		if _, err := w.Door.Show(door.Caller{Addr: "192.0.2.1:7"}, key); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	w.Door.Gate.Set(gate.Loading, false)
	w.Want("ACL SETUSER default -cl.mtake", "+OK\r\n")
	if got := several(ask("k3", "5/1h"), both, ask("k4", "5/1h")); got != "taken NOPERM taken <nil>" {
		t.Errorf("a command that is forbidden among several: %s", got)
	}
	w.Want("ACL SETUSER default -cl.take +cl.mtake", "+OK\r\n")
	if got := several(both); got != "taken <nil>" {
		t.Errorf("a command that is allowed, beside one that is not: %s", got)
	}
	if got := take(ask("k", "5/1h")); got != "NOPERM this user has no permissions to run the 'cl.take' command" {
		t.Error(got)
	}
	if got := w.Do("ACL", "LOG"); !strings.Contains(got, "other") || !strings.Contains(got, "cl.take") ||
		!strings.Contains(got, "addr=192.0.2.1:7") {
		t.Errorf("%q", got)
	}
	w.Want("CONFIG SET requirepass secret", "+OK\r\n")
	if got := take(ask("k", "5/1h")); got != "NOAUTH the user default needs a password: set --http-token-file, and send the token" {
		t.Error(got)
	}
}

// Calls that wait within the process are answered when the server stops. After that no call waits.
func TestTakeWaits(t *testing.T) {
	w := newWorld(t)
	if _, err := w.told(t.Context(), ask("k", "1/1h"), ask("l", "1/1h")); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	w.Want("CONFIG SET wait-max 4000000", "+OK\r\n")
	wait := func() {
		told, _ := w.told(context.Background(), ask("k", "1/1h", door.Option{Name: "WAIT", N: 3_600_000}))
		answered <- told
	}
	go wait()
	celldtest.Eventually(t, "wait", func() bool { callers, _ := w.Door.Port.Waiting(); return callers == 1 })
	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	_, err := w.told(ctx, ask("l", "1/1h", door.Option{Name: "WAIT", N: 4_000_000}))
	if callers, _ := w.Door.Port.Waiting(); err != context.DeadlineExceeded || callers != 1 {
		t.Errorf("whose caller has gone: %v, %d wait", err, callers)
	}
	w.Door.RefuseWaiting()
	for range 2 {
		if got := <-answered; got != "0 0; " {
			t.Errorf("%q", got)
		}
		go wait()
	}
	<-answered
}

// A call with WAIT that comes after SIGTERM is one without it. On an engine it was denied, though the limit had room.
func TestNobodyWaitsAtTheEnd(t *testing.T) {
	w := newWorld(t)
	m := &storetest.Modes{Limiter: w.Door.Limiter}
	w.Door.Limiter = m
	for range 2 {
		got, err := w.told(t.Context(), ask("k", "5/1h", door.Option{Name: "WAIT", N: 1000}))
		if err != nil || got != "1 4; " && got != "1 3; " {
			t.Errorf("%q %v", got, err)
		}
		w.Door.RefuseWaiting()
	}
	if !slices.Equal(m.Seen, []store.WaitMode{store.Wait, store.DontWait}) {
		t.Errorf("they wait as %v", m.Seen)
	}
}

// A policy that goes while a call before waits is the error of its own call alone.
func TestAPolicyGoesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.Want("CL.POLICY SET p 5/1h", ":1\r\n")
	w.Want("CONFIG SET wait-max 4000000", "+OK\r\n")
	if _, err := w.told(t.Context(), ask("k", "1/1h")); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	go func() {
		waits := ask("k", "1/1h", door.Option{Name: "WAIT", N: 3_600_000})
		told, err := w.told(context.Background(), waits, ask("l", "@p"), ask("m", "5/1h"))
		answered <- fmt.Sprint(told, err)
	}()
	celldtest.Eventually(t, "wait", func() bool { callers, _ := w.Door.Port.Waiting(); return callers == 1 })
	w.Want("CL.POLICY DEL p", ":1\r\n")
	w.Door.RefuseWaiting()
	if got := <-answered; got != "0 0; NOPOLICY no such policy 'p'; 1 4; <nil>" {
		t.Error(got)
	}
}

// A check tells the decision as values: by the policy that is found, with times in whole µs.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Want("CL.POLICY SET api 3/1h", ":1\r\n")
	w.Want("CL.POLICY SET jobs 2/30s,algo=conc", ":1\r\n")
	w.Want("CL.RULE ADD DENY bad*", ":1\r\n")
	w.Want("CL.POLICY SET gold 10/1m 100/1d", ":1\r\n")
	api := func(remaining int64, reset time.Duration) []door.Limit {
		return []door.Limit{{Policy: "api", Text: "3/1h", Name: "api", Retry: -1, Limit: 3, Remaining: remaining, Reset: reset, Count: 3,
			Period: time.Hour}}
	}
	denied := api(0, time.Hour)
	denied[0].Limited, denied[0].Retry = true, 20*time.Minute
	for _, tt := range []struct {
		key      string
		policies []string
		want     door.Taken
	}{
		{"k", []string{"@api"}, door.Taken{Retry: -1, Limits: api(2, 20*time.Minute)}},
		{"k", []string{"@api:gold"}, door.Taken{Retry: -1, Limits: api(1, 40*time.Minute)}},
		{"k", []string{"@api:gold:x"}, door.Taken{Retry: -1, Limits: api(0, time.Hour)}},
		{"k", []string{"@api"}, door.Taken{Limited: true, Retry: 20 * time.Minute, Limits: denied}},
		{"bad", []string{"@api"}, door.Taken{Limited: true, Retry: -1, Limits: []door.Limit{
			{Policy: "api", Text: "3/1h", Name: "api", Limited: true, ByRule: true, Retry: -1, Count: 3, Period: time.Hour},
		}}},
		{"j", []string{"@jobs"}, door.Taken{Retry: -1, Limits: []door.Limit{
			{Policy: "jobs", Text: "2/30s,algo=conc", Name: "jobs", Retry: -1, Limit: 2, Remaining: 1, Reset: 30 * time.Second, Count: 2},
		}}},
		{"k", []string{"@gold", "@api"}, door.Taken{Limited: true, Retry: 20 * time.Minute, Binding: 2, Limits: append([]door.Limit{
			{Policy: "gold", Text: "10/1m", Name: "gold 10/1m", Retry: -1, Limit: 10, Remaining: 10, Count: 10, Period: time.Minute},
			{Policy: "gold", Text: "100/1d", Name: "gold 100/1d", Retry: -1, Limit: 100, Remaining: 100, Count: 100, Period: 24 * time.Hour},
		}, denied...)}},
	} {
		c, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: tt.key, Limits: tt.policies})
		if c.Granted, c.Reset, c.Lease = 0, 0, 0; err != nil || !reflect.DeepEqual(c, tt.want) { // these are any take's
			t.Errorf("%s of %s: %+v, %v, want %+v", tt.policies, tt.key, c, err, tt.want)
		}
	}
	_, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@none"}})
	if err == nil || err.Error() != "NOPOLICY no such policy 'none'" {
		t.Error(err)
	}
	if got := w.Do("INFO", "commandstats"); !strings.Contains(got, "cmdstat_cl.take:calls=8,") || !strings.Contains(got, "failed_calls=1") {
		t.Errorf("they are not counted: %q", got)
	}
}

// A check that comes while a script runs, which then takes too long, changes nothing.
func TestCheckDuringAScript(t *testing.T) {
	w := newWorld(t)
	w.Want("CL.POLICY SET api 3/1h", ":1\r\n")
	w.Door.Execution.Lock()
	answered := make(chan error)
	go func() {
		_, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@api"}})
		answered <- err
	}()
	for range 1000 { // so that it waits for the script, most likely
		runtime.Gosched()
	}
	w.Door.Gate.Set(gate.Busy, true)
	w.Door.Execution.Unlock()
	if err := <-answered; err == nil || !strings.HasPrefix(err.Error(), "BUSY ") {
		t.Error(err)
	}
	w.Door.Gate.Set(gate.Busy, false)
	w.Want("DBSIZE", ":0\r\n")
}

// The end of a lease needs the right to all keys that it is of, of a caller whose rights are the user default's.
func TestEndsLeasesOfItsKeysOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lease int64
	both := door.Ask{Keys: []string{"k", "other"}, Limits: []string{"5/1h", "5/1h"},
		Options: []door.Option{{Name: "LEASE", N: 60_000}}}
	err := w.Door.Take(t.Context(), inside, []door.Ask{both}, func(t *door.Taken, _ error) { lease = t.Lease })
	if err != nil || lease == 0 {
		t.Fatal(lease, err)
	}
	w.Want("ACL SETUSER default resetkeys ~k*", "+OK\r\n")
	release, stranger := change("cl.release", lease, 0), door.Caller{Addr: "192.0.2.1:7"}
	if did, err := w.Door.ChangeLease(stranger, release); did || err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
		t.Errorf("who has no right to the other key: %v, %v", did, err)
	}
	if got := w.Do("ACL", "LOG"); !strings.Contains(got, "other") || !strings.Contains(got, "addr=192.0.2.1:7") {
		t.Errorf("it is not logged: %q", got)
	}
	if did, err := w.Door.ChangeLease(inside, release); !did || err != nil {
		t.Errorf("who may do everything: %v, %v", did, err)
	}
}

// Calls are in LATENCY as commands are, with the time that each has taken.
func TestLatencyOfCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Want("CONFIG SET latency-monitor-threshold 1", "+OK\r\n")
	clock := w.Door.Clock
	w.Door.Clock = func() int64 { w.nowNS += 2e6; return clock() }
	if _, err := w.Door.Show(inside, "k"); err != nil {
		t.Error(err)
	}
	w.Door.Clock = clock
	if got := w.Do("LATENCY", "LATEST"); !strings.Contains(got, "fast-command") {
		t.Errorf("%q", got)
	}
}

// Monitors see calls by values as the commands that do the same.
func TestMonitorsSeeCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Want("CL.POLICY SET three 9/1h 5/1m 90/1d", ":1\r\n")
	for n := range 3 {
		if told := w.Door.TellMonitors([]byte("+line\r\n")); told != n {
			t.Errorf("%d monitors were told, want %d", told, n)
		}
		m := sessiontest.Connect(t, w.Sessions())
		m.Want("MONITOR", "+OK\r\n")
		w.Peer = m
	}
	if _, err := w.Door.Throttle(inside, "t", [4]int64{2, 1, 60, 1}); err != nil {
		t.Error(err)
	}
	_, err := w.told(t.Context(), ask("k", "@three"), ask("k", "5/1h", door.Option{Name: "WAIT", N: 7}),
		ask("f", "5/1h", door.Option{Name: "FORCE"}),
		ask("o", "5/1h,name=x", door.Option{Name: "COST", N: 2}, door.Option{Name: "OF", Text: "x"}))
	if err != nil {
		t.Error(err)
	}
	if _, err := w.Door.Show(inside, "k"); err != nil {
		t.Error(err)
	}
	if _, err := w.Door.ChangeLease(inside, change("cl.renew", 1, 9000)); err != nil {
		t.Error(err)
	}
	if top := sessiontest.Connect(t, w.Sessions()).Do("CL.TOP", "BY", "CALLS"); !strings.Contains(top, "$1\r\nt\r\n:1\r\n") {
		t.Errorf("CL.THROTTLE is not among the calls: %q", top)
	}
	seen := w.Say("")
	for _, line := range []string{`"CL.THROTTLE" "t" "2" "1" "60" "1"`, `"CL.TAKE" "k" "@three" "COST" "1"`,
		`"CL.TAKE" "k" "5/1h" "COST" "1" "WAIT" "7"`, `"CL.TAKE" "f" "5/1h" "COST" "1" "FORCE"`,
		`"CL.TAKE" "o" "5/1h,name=x" "COST" "1" "COST" "2" "OF" "x"`, `"CL.SHOW" "k"`, `"CL.RENEW" "k" "1" "9000"`} {
		if !strings.Contains(seen, "[0 192.0.2.1:7] "+line+"\r\n") {
			t.Errorf("no %s in %q", line, seen)
		}
	}
	if year := time.Unix(0, sessiontest.StartNS).Unix(); !strings.Contains(seen, fmt.Sprintf("+%d.", year)) {
		t.Errorf("no line of %d in %q", year, seen)
	}
}

// Wrong numbers, and keys of another type, are errors that count.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Want("SET s text", "-ERR value is not an integer or out of range\r\n")
	w.Want("SET n 7", "+OK\r\n")
	w.Want("CL.TAKE limits 5/1h", "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:720000\r\n:1\r\n:0\r\n")
	_, numbers := w.Door.Throttle(inside, "t", [4]int64{2, 1, 0, 1})
	_, of := w.Door.Throttle(inside, "limits", [4]int64{2, 1, 60, 1})
	_, take := w.Door.TakeOne(t.Context(), inside, ask("n", "5/1h"))
	for _, c := range []struct {
		err  error
		code string
	}{{numbers, "Cell"}, {of, "WRONGTYPE"}, {take, "WRONGTYPE"}} {
		is := (*door.CallError)(nil)
		if !errors.As(c.err, &is) || is.Code() != c.code {
			t.Errorf("%v, want %s", c.err, c.code)
		}
	}
	w.Want("ACL SETUSER default resetkeys ~k*", "+OK\r\n")
	if _, err := w.Door.Show(door.Caller{Addr: "192.0.2.1:7"}, "other"); err == nil {
		t.Error("a key of others is shown")
	}
	if got := w.Do("INFO", "commandstats"); !strings.Contains(got, "cmdstat_cl.throttle:calls=2,") ||
		!strings.Contains(got, "cmdstat_cl.show:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,") {
		t.Errorf("%q", got)
	}
}

// What is near to a limit follows --near-limit.
func TestNearCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Want("CONFIG SET near-limit 50", "+OK\r\n")
	if _, err := w.told(t.Context(), ask("k", "10/1h", door.Option{Name: "COST", N: 5}), ask("k", "10/1h")); err != nil {
		t.Error(err)
	}
	if got := w.Do("CL.STATS", "literals"); !strings.Contains(got, "near\r\n:1\r\n") {
		t.Errorf("%q", got)
	}
}

// How long a call has waited that passes then is noted, and who waits by RESP is refused when the server stops, too.
func TestAWaitThatPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lease int64
	one := ask("k", "1/1h,algo=conc", door.Option{Name: "LEASE", N: 3_600_000})
	err := w.Door.Take(t.Context(), inside, []door.Ask{one}, func(t *door.Taken, _ error) { lease = t.Lease })
	if err != nil || lease == 0 {
		t.Fatal(lease, err)
	}
	waits := func() (callers int64) {
		callers, _ = w.Door.Port.Waiting()
		return callers
	}
	answered := make(chan string)
	for n, want := range []string{"1 0; ", "0 0; "} {
		go func() {
			told, err := w.told(context.Background(), ask("k", "1/1h,algo=conc", door.Option{Name: "WAIT", N: 50_000}))
			answered <- fmt.Sprint(told, err)
		}()
		celldtest.Eventually(t, "wait", func() bool { return waits() == 1 })
		if n == 0 {
			if did, err := w.Door.ChangeLease(inside, change("cl.release", lease, 0)); !did || err != nil {
				t.Error(did, err)
			}
		} else {
			w.Door.RefuseWaiting()
		}
		if got := <-answered; got != want+"<nil>" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if h := w.Door.Stats.Waits.Histogram(); h.Count != 1 {
		t.Errorf("%+v", h)
	}
}
