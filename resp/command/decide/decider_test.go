package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store/memory"
)

// Calls that are alike are decided together, up to 64, and others end the batch. Each is answered as if it stood alone.
func TestCallsAreGathered(t *testing.T) {
	const throttled, taken = "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n", "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n"
	throttle, named, take := frame("CL.THROTTLE", "k", "4", "1", "60", "0"), frame("CL.THROTTLE", "k", "@p", "0"),
		frame("CL.TAKE", "k", "5/1m", "PEEK")
	many := frame(slices.Concat([]string{"CL.TAKE", "k"}, slices.Repeat([]string{"5/1m"}, 43), []string{"PEEK"})...)
	for name, test := range map[string]struct {
		calls string
		asked []int
		want  string
	}{
		"alike":        {strings.Repeat(throttle, 5), []int{5}, strings.Repeat(throttled, 5)},
		"65":           {strings.Repeat(throttle, 65), []int{64, 1}, strings.Repeat(throttled, 65)},
		"128":          {strings.Repeat(take, 128), []int{64, 64}, strings.Repeat(taken, 128)},
		"two commands": {throttle + throttle + take + take + throttle, []int{2, 2, 1}, throttled + throttled + taken + taken + throttled},
		"by a policy":  {throttle + named + named + throttle, []int{1, 2, 1}, strings.Repeat(throttled, 4)},
		"an error":     {throttle + frame("CL.THROTTLE", "k", "x", "1", "60") + throttle, []int{1, 1}, throttled + "-" + ErrThrottleParse + "x\r\n" + throttled},
		"alone":        {take + frame("CL.MTAKE", "1", "k", "5/1m", "PEEK") + take, []int{1, 1, 1}, taken + "*2\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n" + taken},
		"many limits":  {strings.Repeat(many, 7), []int{5, 2}, strings.Repeat("*7\r\n:1"+taken[len("*7\r\n:0"):], 7)},
		"nothing":      {"", nil, ""},
		"a part":       {throttle + throttle[:9], []int{1}, throttled},
	} {
		w := newWorld(t)
		w.set("p", "5/1m")
		for range 5 {
			w.send(test.calls) // the batch has its room afterwards
		}
		for range 2 {
			w.asked = nil
			if got := w.send(test.calls); got != test.want || !slices.Equal(w.asked, test.asked) {
				t.Errorf("%s: %v, %q; want %v, %q", name, w.asked, got, test.asked, test.want)
			}
		}
	}
}

// A batch knows its calls, and those from one on can be taken out of it.
func TestCut(t *testing.T) {
	for _, call := range []string{frame("CL.THROTTLE", "key0", "4", "1", "60"), frame("CL.TAKE", "key0", "5/1m", "6/1h")} {
		w := newWorld(t)
		var pipeline strings.Builder
		for i := range 9 {
			pipeline.WriteString(strings.ReplaceAll(call, "key0", fmt.Sprint("key", i)))
		}
		b, args := &Batch{}, [][]byte(nil)
		raw := []byte(pipeline.String())
		gather := func() {
			if used, next := w.d.Gather(b, raw, &args, limitsOfFrames); used != len(raw) || next != 0 {
				t.Fatalf("%d bytes, then %d", used, next)
			}
		}
		gather()
		for range 5 {
			b.Cut(0)
			gather() // the batch has its room afterwards
		}
		work := 9
		if strings.Contains(call, "TAKE") {
			work = 27
		}
		if b.Len() != 9 || b.Work() != work || !strings.EqualFold(b.Row().Name, call[strings.Index(call, "CL"):][:len(b.Row().Name)]) {
			t.Errorf("%d calls of %s, %d work", b.Len(), b.Row().Name, b.Work())
		}
		for i := range 9 {
			if key := string(b.Key(i)); key != fmt.Sprint("key", i) {
				t.Errorf("key %d is %q", i, key)
			}
		}
		b.Cut(4)
		if b.Len() != 4 || string(b.Key(3)) != "key3" {
			t.Errorf("%d calls are left", b.Len())
		}
		w.ask(&command.Call{Host: w, NowNS: w.NowNS}, b)
		if n := w.Store.Len(w.NowNS); n != 4 || b.Len() != 0 || b.Work() != 0 {
			t.Errorf("%d keys; %d calls", n, b.Len())
		}
		gather()
		b.Cut(0)
		if b.Len() != 0 || b.Work() != 0 {
			t.Errorf("%d calls, %d work", b.Len(), b.Work())
		}
	}
}

var limitsOfFrames = wire.Limits{MaxArgs: 1 << 20, MaxBulk: 1 << 20, Authed: true}

// A batch that is decided later has keys and shapes of its own: the buffer and the Decider go on.
func TestDecidedLater(t *testing.T) {
	for i, test := range []struct{ call, other, want string }{
		{frame("CL.THROTTLE", "k", "0", "1", "60"), frame("CL.THROTTLE", "k", "0", "1", "61"), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n"},
		{frame("CL.TAKE", "k", "1/1m", "9/1m,algo=window"), frame("CL.TAKE", "k", "3/1m"), "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n*7\r\n:1\r\n:1\r\n:0\r\n:60000\r\n:60000\r\n:0\r\n:0\r\n"},
	} {
		w := newWorld(t)
		l, b, args, wakes := &later{Limiter: w.Store}, &Batch{}, [][]byte(nil), woken(0)
		raw := []byte(test.call + test.call)
		w.d.Gather(b, raw, &args, limitsOfFrames)
		if w.d.Ask(b, l, w.Access(), &wakes) {
			t.Fatal("it is decided")
		}
		b.KeepShapes()
		if b.shapes[0] != b.shapes[1] || b.shapes[0] == w.d.shapes.last {
			t.Error("the shapes are not copied once")
		}
		for i := range raw {
			raw[i] = 'x'
		}
		for i := range 2000 {
			w.find(strings.Replace(test.other, "\r\n61\r\n", fmt.Sprintf("\r\n%d\r\n", 10+i%80), 1))
			w.find(frame("CL.TAKE", "k", fmt.Sprint(4+i, "/1m")))
		}
		l.answer()
		c := &command.Call{Host: w, NowNS: w.NowNS}
		w.d.Answer(c, b)
		if string(c.Out) != test.want || wakes != 1 {
			t.Errorf("%d: %q, want %q", i, c.Out, test.want)
		}
		got := w.server.Top.Most(decisions.ByDenied, decisions.Start, 9, decisions.Any)
		if len(got) != 1 || got[0] != (decisions.Key{Key: "k", Count: 1}) {
			t.Errorf("%d: denied are %v", i, got)
		}
	}
}

// The keys of a batch that is decided later are those that were given, one memory for each that is the same.
func TestKeptKeys(t *testing.T) {
	w := newWorld(t)
	f, _ := w.shapeOf("1/1m", "BIND", "LEASE", "5")
	f2 := *f
	f2.limits = append(slices.Clone(f.limits), f.limits...)
	f2.limits[1].pair = 1
	f2.row = w.server.Commands.Find([]byte("cl.mtake"))
	b, buffer := &Batch{}, []byte("abcd")
	b.AddCall(&f2, [][]byte{nil, []byte("2"), buffer[:2], nil, buffer[2:], nil})
	b.Add(f, buffer[:2])
	b.AddCall(&f2, [][]byte{nil, []byte("2"), buffer[1:3], nil, buffer[1:3], nil})
	f3 := *f
	f3.limits = f2.limits
	b.Add(&f3, buffer[1:3])
	b.keepKeys()
	copy(buffer, "xxxx")
	var keys []string
	for i := range b.takes {
		for j := range b.takes[i].Calls {
			keys = append(keys, string(b.takes[i].Calls[j].Key))
		}
	}
	if fmt.Sprint(keys) != "[ab cd ab bc bc bc bc]" || &b.takes[3].Calls[0].Key[0] != &b.takes[3].Calls[1].Key[0] {
		t.Error(keys)
	}
	if t1, t2 := b.takes[0].Terms, b.takes[1].Terms; t1 == t2 || t1 == f.Terms() || !t1.Bound || t1.LeaseNS != 5e6 {
		t.Errorf("%+v, %+v", t1, t2)
	}
	b.kept = make([]byte, 0, mostKept)
	if b.reset(); b.kept == nil {
		t.Error("room for keys is not kept")
	}
	b.kept = make([]byte, 0, mostKept+1)
	if b.reset(); b.kept != nil {
		t.Error("too much room is kept")
	}
}

// Only a batch that may change something is a write.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	for calls, changes := range map[string]bool{
		frame("CL.THROTTLE", "k", "4", "1", "60", "0"):                        true,
		frame("CL.TAKE", "k", "5/1m", "PEEK"):                                 false,
		frame("CL.TAKE", "k", "5/1m", "PEEK") + frame("CL.TAKE", "k", "5/1m"): true,
	} {
		b, args := &Batch{}, [][]byte(nil)
		if w.d.Gather(b, []byte(calls), &args, limitsOfFrames); b.Changes() != changes {
			t.Errorf("%q: %v", calls, b.Changes())
		}
	}
}

// Each call is counted once, whatever it asks for. A call that only looks, gives back or fails is not counted. CL.TOP lists those who
// are denied.
func TestWhatIsCounted(t *testing.T) {
	w := newWorld(t)
	w.want("CL.RULE ADD DENY bad", ":1\r\n")
	w.set("p", "1/1h")
	denied := func() (n int64) {
		for _, k := range w.server.Top.Most(decisions.ByDenied, decisions.Start, 100, decisions.Any) {
			n += k.Count
		}
		return n
	}
	want := func(line string, change ...decisions.Kind) {
		t.Helper()
		words := strings.Fields(line)
		for _, send := range []func() string{func() string { return w.do(words...) }, func() string { return w.send(frame(words...)) }} {
			before, deniedBefore, failed := w.server.Counts.Sum(), denied(), len(w.failed)
			w.Store.Flush()
			for _, first := range []string{
				"CL.TAKE k 1/1h", "CL.THROTTLE t 0 1 60", "CL.THROTTLE q @p", "CL.TAKE s 1/1h,shadow", "CL.TAKE b 1/1h,block=5m",
				"CL.TAKE u 5/1h COST 3",
			} {
				w.do(strings.Fields(first)...)
			}
			w.d.Decided.Clear()
			got := send()
			w.d.Decided.Settle(0, nil)
			limited := int64(0)
			for _, kind := range change {
				before[kind]++
				if kind == decisions.TakeLimited || kind == decisions.ThrottleLimited {
					limited++
				}
			}
			if after := w.server.Counts.Sum(); after != before || denied() != deniedBefore+limited {
				t.Errorf("%s: %q, %v; want %v; %d denials", line, got, after, before, denied()-deniedBefore)
			}
			if isError := got[0] == '-'; isError != (len(w.failed) > failed) {
				t.Errorf("%s: %q, failures %q", line, got, w.failed[failed:])
			}
		}
	}
	want("CL.THROTTLE new 0 1 60", decisions.ThrottleAllowed)
	want("CL.THROTTLE t 0 1 60", decisions.ThrottleLimited)
	want("CL.THROTTLE t 0 1 60 0")
	want("CL.THROTTLE t 0 1 60 -1")
	want("CL.THROTTLE none -1 1 60", decisions.ThrottleLimited)
	want("CL.THROTTLE bad 0 1 60", decisions.ThrottleLimited, decisions.RuleDenied)
	want("CL.THROTTLE bad 0 1 60 0")
	want("CL.THROTTLE k 0 1 60")
	want("CL.TAKE new 1/1h 5/1h,algo=log", decisions.TakeAllowed)
	want("CL.TAKE k 1/1h 5/1h,algo=log", decisions.TakeLimited)
	want("CL.TAKE k 1/1h FORCE", decisions.TakeAllowed)
	want("CL.TAKE k 1/1h PEEK")
	want("CL.TAKE k 1/1h COST 0")
	want("CL.TAKE t 1/1h")
	want("CL.TAKE bad 1/1h 2/1h", decisions.TakeLimited, decisions.RuleDenied)
	want("CL.TAKE b 1/1h,block=5m", decisions.TakeLimited, decisions.Blocked)
	want("CL.TAKE u 5/1h COST 3 UPTO", decisions.TakeAllowed, decisions.PartlyGranted)
	want("CL.TAKE u 5/1h COST 2 UPTO", decisions.TakeAllowed)
	want("CL.TAKE new 1/1h,shadow", decisions.TakeAllowed, decisions.ShadowAllowed)
	want("CL.TAKE s 1/1h,shadow", decisions.TakeAllowed, decisions.ShadowLimited)
	want("CL.TAKE s 1/1h,shadow PEEK")
	want("CL.MTAKE 2 m 1/1h n 1/1h", decisions.TakeAllowed)
	want("CL.MTAKE 2 m 1/1h bad 1/1h", decisions.TakeLimited, decisions.RuleDenied)
	want("CL.GIVE k 1/1h 1")
	want("CL.THROTTLE new @p", decisions.ThrottleAllowed)
	want("CL.THROTTLE q @p", decisions.ThrottleLimited)
	want("CL.THROTTLE q @p 0")
	want("CL.THROTTLE q @p -1")
}

// onceHost is a transaction that may run again: its effects happen when it is stored.
type onceHost struct {
	command.Host
	effects []func()
}

func (h *onceHost) Once(effect func()) { h.effects = append(h.effects, effect) }

// Each key is denied under its own name, and in a transaction on other keys than the server's when that is stored.
func TestWhoIsDenied(t *testing.T) {
	top := func(w *world) string {
		return fmt.Sprint(w.server.Top.Most(decisions.ByDenied, decisions.Start, 9, decisions.Any))
	}
	w := newWorld(t)
	for range 2 {
		w.do("CL.MTAKE", "2", "a", "9/1h", "b", "1/1h")
		w.do("CL.TAKE", "a", "1/1m")
		w.send(frame("CL.TAKE", "c", "9/1h", "1/1m"))
		w.send(frame("CL.THROTTLE", "d", "0", "1", "60"))
	}
	if got := top(w); got != "[{a 1} {b 1} {c 1} {d 1}]" {
		t.Error(got)
	}
	for i, call := range []string{frame("CL.TAKE", "k", "1/1h"), frame("CL.THROTTLE", "k", "0", "1", "60")} {
		w := newWorld(t)
		view, host := memory.New(memory.Options{}), &onceHost{Host: w.Host}
		c, b, args := &command.Call{Host: host, NowNS: w.NowNS}, &Batch{}, [][]byte(nil)
		for range 2 {
			raw := []byte(call)
			w.d.Gather(b, raw, &args, limitsOfFrames)
			w.d.Ask(b, view, w.Access(), nil)
			w.InExec = true
			w.d.Answer(c, b)
			copy(b.kept[:cap(b.kept)], "xxxx")
		}
		if got := top(w); got != "[]" || len(host.effects) != 2 { // of the call that passed, and of the denied one
			t.Errorf("%d: %s", i, got)
		}
		for _, effect := range host.effects {
			effect()
		}
		if got := top(w); got != "[{k 1}]" {
			t.Errorf("%d: %s", i, got)
		}
	}
}

// deferring is a host that keeps effects until the end of a transaction on an engine, which may come on another event loop.
type deferring struct {
	command.Host
	effects []func()
}

func (h *deferring) Inside() bool       { return true }
func (h *deferring) Once(effect func()) { h.effects = append(h.effects, effect) }

// What a transaction on an engine has noted counts at its end, while its event loop may decide calls of others: go test -race sees if the
// two share something. In TestScriptsAreAtomic on engines they did.
func TestCallsOfATransactionCountLater(t *testing.T) {
	d, h := newWorld(t).d, &deferring{}
	c := &command.Call{Host: h}
	came := decisions.Came{By: decisions.ByCalls, N: 1, Key: []byte("k")}
	for range 100 {
		d.came = append(d.came, came)
		d.countCame(c, &Batch{})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, effect := range h.effects {
			effect()
		}
	}()
	for range 100 {
		d.came = append(d.came, came)
		d.addCame()
	}
	<-ended
	if got := d.Top.Most(decisions.ByCalls, decisions.Start, 9, decisions.Any); len(got) != 1 || got[0].Count+d.late != 200 {
		t.Errorf("%v", got)
	}
}
