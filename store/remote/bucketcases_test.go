package remote

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

// throttleOf is a call of CL.THROTTLE.
func (s *Store) throttleOf(key string, b cell.Bucket, quantity int64) *call {
	return &call{Common: queue.Common{Key: key, Deadline: s.deadline()}, store: s,
		throttle: &store.Request{Key: []byte(key), Bucket: b, Quantity: quantity}}
}

func (s *Store) takeOf(t *testing.T, key, limit string, cost int64) *call {
	c := takeCall(t, key, limit)
	o := &call{Common: queue.Common{Key: key, Deadline: s.deadline()}, store: s,
		take: &store.TakeRequest{Calls: []store.Call{c}, TakeOptions: store.TakeOptions{Cost: cost}}}
	o.field = s.fieldOf(&c)
	return o
}

// knows tells the Store the engine's time, which is this process's, and a key's TAT, with which a call was denied or not.
func (s *Store) knows(key string, tat uint64, denied bool) {
	now := time.Now()
	s.link.Clock(key).Observe(now.UnixNano(), now, now)
	s.tatCache.note(key, cachedTAT{tatNS: tat, got: now, denied: denied})
}

// holder holds up what is asked of its key, until its batch goes on.
type holder struct {
	queue.Common
	batch chan *queue.Group
}

func (h *holder) GoesWith(first queue.Operation) bool { return first == h }
func (h *holder) Send(b *queue.Group)                 { h.batch <- b }
func (h *holder) Answer(error)                        {}

// heldUp holds up all that is asked of a key.
func (s *Store) heldUp(key string) *queue.Group {
	h := &holder{Common: queue.Common{Key: key, Deadline: s.deadline()}, batch: make(chan *queue.Group, 1)}
	s.queues.Enqueue(h)
	return <-h.batch // what was asked before it may not have ended yet
}

// deciding is the moment at which calls are to be decided.
func (s *Store) deciding(calls ...*call) *deciding {
	b := s.heldUp(calls[0].Key)
	b.Operations = nil
	for _, o := range calls {
		b.Operations = append(b.Operations, o)
	}
	return &deciding{Store: s, group: b, calls: calls}
}

// commits reports a command that stores what a view has changed.
func commits(command string) bool {
	words := strings.Split(command, " ")
	if words[0] != "EVALSHA" && words[0] != "EVAL" || strings.Contains(command, throttleScript.Digest) {
		return false
	}
	keys, _ := strconv.Atoi(words[2])
	return len(words) > 3+keys+2 // besides the view's name and whether it begins a list
}

func commitsOf(e *celldtest.Ailing) (n int) {
	for _, command := range e.Commands() {
		if commits(command) {
			n++
		}
	}
	return n
}

// A rule decides on its keys without the engine; for others the engine is asked.
func TestRulesDecideWithoutTheEngine(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		for _, rule := range []policy.Rule{{Pattern: "good"}, {Deny: true, Pattern: "bad"}} {
			if _, err := s.policies.PutRule(rule, atNS); err != nil {
				t.Fatal(err)
			}
		}
		e.AnswersBy(func(string) string {
			return celldtest.ArrayOf("_\r\n", celldtest.IntOf(1_700_000_000), celldtest.IntOf(0), celldtest.IntOf(0))
		})
		for key, asked := range map[string]int{"good": 0, "bad": 0, "other": 1} {
			before := e.Count()
			reqs := []store.Request{{Key: []byte(key), Bucket: bucketOf(t, 15, 30, 60), Quantity: 1, Err: store.ErrFull}}
			s.throttleNow(reqs, store.Access{NowNS: atNS})
			if r := reqs[0]; r.Err != nil || r.Decision.Limited != (key == "bad") || (r.Decision.Limit == 16) != (key != "bad") ||
				e.Count()-before != asked {
				t.Errorf("%s: %+v, asked %d", key, r, e.Count()-before)
			}
		}
		for key, asked := range map[string]int{"good": 0, "bad": 0, "another": 1} {
			before := e.Count()
			c := s.plainly(t, 1, takeCall(t, key, "10/1m"))
			if r := c.reqs[0]; r.Err != nil || r.Taken.Limited != (key == "bad") || (e.Count() > before) != (asked > 0) {
				t.Errorf("%s: %+v, asked %d", key, r.Taken, e.Count()-before)
			}
		}
	})
}

// What a script decides: one bucket or window that takes something or not.
func TestWhichTakesHaveAScript(t *testing.T) {
	s := alone(t, "error")
	of := func(o store.TakeOptions, pairs ...string) *store.TakeRequest {
		return &store.TakeRequest{Calls: s.callsOf(t, pairs...), TakeOptions: o}
	}
	one := []string{"k", "10/1m"}
	for i, c := range []struct {
		r    *store.TakeRequest
		want bool
	}{
		{of(store.TakeOptions{Cost: 1}, one...), true},
		{of(store.TakeOptions{Cost: 11}, one...), true},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,shadow"), true},
		{of(store.TakeOptions{Cost: 0}, one...), false},
		{of(store.TakeOptions{Cost: -1}, one...), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m", "k", "20/1h"), false},
		{of(store.TakeOptions{Cost: 1, Mode: cell.Peek}, one...), false},
		{of(store.TakeOptions{Cost: 1, Mode: cell.Force}, one...), false},
		{of(store.TakeOptions{Cost: 1, UpTo: true}, one...), false},
		{of(store.TakeOptions{Cost: 1, Terms: &store.Terms{}}, one...), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,algo=log"), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,block=1s"), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,algo=window"), true},
		{of(store.TakeOptions{Cost: 1}, "k", "10/month,tz=+08:00"), true},
		{of(store.TakeOptions{Cost: 1}, "k", "4294967295/1m,algo=window"), true},
		{of(store.TakeOptions{Cost: 1}, "k", "4294967296/1m,algo=window"), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,algo=window,block=1s"), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,algo=window,shadow"), false},
		{of(store.TakeOptions{Cost: 1}, "k", "10/1m,algo=slide"), false},
	} {
		if is := scripted(c.r); is != c.want {
			t.Errorf("%d: %v", i, is)
		}
	}
}

// One script decides on calls of CL.THROTTLE, or on Takes of one limit.
func TestWhatGoesTogether(t *testing.T) {
	s := alone(t, "error")
	take, throttle := s.takeOf(t, "k", "10/1m", 1), s.throttleOf("k", bucketOf(t, 9, 10, 10), 1)
	change := s.views.NewChange([]string{"k"}, s.deadline(), nil, nil)
	for limit, want := range map[string]bool{"10/1m": true, "11/1m": false, "10/1m,burst=3": false, "10/2m": false} {
		if is := s.takeOf(t, "k", limit, 2).GoesWith(take); is != want {
			t.Errorf("%s: %v", limit, is)
		}
	}
	other := s.takeOf(t, "k", "10/1m", 1)
	other.take.Calls[0].Policy = &policy.Limit{ID: 7}
	if other.GoesWith(take) {
		t.Error("a policy and a literal")
	}
	if !throttle.GoesWith(s.throttleOf("k", bucketOf(t, 5, 10, 10), -1)) || throttle.GoesWith(take) || take.GoesWith(throttle) ||
		change.GoesWith(take) || take.GoesWith(change) || throttle.GoesWith(change) || !change.GoesWith(change) {
		t.Error("kinds go together")
	}
}

// A bucket whose debt scripts cannot compute is a change.
func TestWhatScriptsCannotCompute(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.AnswersBy(func(command string) string {
			if commits(command) {
				return linktest.ViewReply("stored", -1)
			}
			return linktest.ViewReply("read", -1, nothing)
		})
		reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 1, 365*86400), Quantity: 1}}
		if s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()}); reqs[0].Err != nil || commitsOf(e) != 1 ||
			s.stats.Scripts.Load() != 0 {
			t.Errorf("%v, asked %q", reqs[0].Err, e.Commands())
		}
	})
}

// The tolerance and the increment of an operation, and whether a script can compute with them: below 2^52 ns on both sides.
func TestWhatAnOperationAsks(t *testing.T) {
	s := alone(t, "error")
	ns := func(burst int64) cell.Bucket { // of 1 ns a call
		b, err := cell.NewBucket(burst, 1_000_000_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for i, c := range []struct {
		o                    *call
		tolerance, increment int64
		exact                bool
	}{
		{s.throttleOf("k", bucketOf(t, 15, 30, 60), 3), 32e9, 6e9, true},
		{s.throttleOf("k", bucketOf(t, 15, 30, 60), -1), 32e9, -2e9, true},
		{s.throttleOf("k", ns(9), exactNS-1), 10, exactNS - 1, true},
		{s.throttleOf("k", ns(9), exactNS), 10, exactNS, false},
		{s.throttleOf("k", ns(9), 1-exactNS), 10, 1 - exactNS, true},
		{s.throttleOf("k", ns(9), -exactNS), 10, -exactNS, false},
		{s.throttleOf("k", ns(exactNS-2), 1), exactNS - 1, 1, true},
		{s.throttleOf("k", ns(exactNS-1), 1), exactNS, 1, false},
		{s.takeOf(t, "k", "10/10s", 2), 10e9, 2e9, true},
		{s.takeOf(t, "k", "10/10s", 10), 10e9, 10e9, true},
		{s.takeOf(t, "k", "10/10s", 11), 10e9, 10e9 + 1, true},
		{s.takeOf(t, "k", "10/10s", math.MaxInt64), 10e9, 10e9 + 1, true},
	} {
		if tolerance, increment := c.o.asks(); tolerance != c.tolerance || increment != c.increment || c.o.exact() != c.exact {
			t.Errorf("%d: %d, %d, exact %v", i, tolerance, increment, c.o.exact())
		}
	}
	if p := s.throttleOf("k", ns(9), 1).params(); p != (cell.Params{}) {
		t.Error(p)
	}
	if o := s.takeOf(t, "k", "10/10s", 1); o.params() != o.take.Calls[0].Limit.Params || o.params() == (cell.Params{}) {
		t.Error(o.params())
	}
	for quantity, gives := range map[int64]bool{-1: true, 0: false, 1: false} {
		if o := s.throttleOf("k", ns(9), quantity); o.gives() != gives {
			t.Errorf("%d gives: %v", quantity, o.gives())
		}
	}
	if s.takeOf(t, "k", "10/10s", 1).gives() {
		t.Error("a Take gives")
	}
}

// What an operation is answered for a TAT, and the next TAT, 0 where that has been reached.
func TestDecisionsForATAT(t *testing.T) {
	s := alone(t, "error")
	full := uint64(atNS + 10e9)
	for i, c := range []struct {
		o       *call
		tat     uint64
		next    uint64
		limited bool
		taken   store.Taken
	}{
		{s.takeOf(t, "k", "10/10s", 1), 0, uint64(atNS + 1e9), false, store.Taken{Granted: 1, RetryAfterNS: cell.Never, ResetAfterNS: 1e9}},
		{s.takeOf(t, "k", "10/10s", 2), full, full, true, store.Taken{Limited: true, RetryAfterNS: 2e9, ResetAfterNS: 10e9}},
		{s.takeOf(t, "k", "10/10s,shadow", 2), full, uint64(atNS + 12e9), true, store.Taken{Granted: 2, RetryAfterNS: cell.Never, ResetAfterNS: 12e9}},
		{s.throttleOf("k", bucketOf(t, 9, 10, 10), 1), full, full, true, store.Taken{}},
		{s.throttleOf("k", bucketOf(t, 9, 10, 10), 0), uint64(atNS), 0, false, store.Taken{}},
		{s.throttleOf("k", bucketOf(t, 9, 10, 10), 0), uint64(atNS + 1), uint64(atNS + 1), false, store.Taken{}},
		{s.throttleOf("k", bucketOf(t, 9, 10, 10), -1), uint64(atNS + 1e9), 0, false, store.Taken{}},
	} {
		next := c.o.decideAt(cell.State{A: c.tat}, atNS).A
		if c.o.limited() != c.limited || i != 2 && next != c.next {
			t.Errorf("%d: next %d, limited %v", i, int64(next)-atNS, c.o.limited())
		}
		if c.o.take != nil && i != 2 && c.o.take.Taken != c.taken {
			t.Errorf("%d: %+v", i, c.o.take.Taken)
		}
		if i == 2 && (c.o.take.Taken.Limited || c.o.take.Taken.Granted != 2 || c.o.take.Taken.RetryAfterNS != cell.Never) {
			t.Errorf("shadow: %+v", c.o.take.Taken)
		}
	}
}

// A call is denied again without the engine only by what is known of it, and where nothing may have changed since.
func TestWhoIsDeniedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := bucketOf(t, 0, 1, 60)
		for _, c := range []struct {
			name     string
			quantity int64
			denied   bool // the last call was
			clock    bool // is known
			asked    bool // another call of the key is
			pause    time.Duration
			again    bool
			forgets  bool
		}{
			{"a denial", 1, true, true, false, 0, true, false},
			{"no denial", 1, false, true, false, 0, false, false},
			{"a refund", -1, true, true, false, 0, false, true},
			{"a peek", 0, true, true, false, 0, false, false},
			{"a call before it", 1, true, true, true, 0, false, false},
			{"a clock that is not known", 1, true, false, false, 0, false, false},
			{"a moment before it is old", 1, true, true, false, denialLasts - 1, true, false},
			{"an old one", 1, true, true, false, denialLasts, false, false},
		} {
			s, _ := byItself(t)
			s.options.Denials = 1
			o := s.throttleOf("k", full, c.quantity)
			s.tatCache.note("k", cachedTAT{tatNS: uint64(time.Now().UnixNano() + 60e9), got: time.Now(), denied: c.denied})
			if c.asked {
				s.heldUp("k")
			}
			celldtest.Pass(c.pause)
			if c.clock {
				s.link.Clock("k").Observe(time.Now().UnixNano(), time.Now(), time.Now())
			}
			if is := s.deniedAgain(o); is != c.again {
				t.Errorf("%s: %v", c.name, is)
			}
			if forgotten := s.tatCache.tat("k") == 0; forgotten != c.forgets {
				t.Errorf("%s: forgotten is %v", c.name, forgotten)
			}
		}
	})
}

// Denials are answered here only where they are to be remembered.
func TestDenialsAreRememberedIfAsked(t *testing.T) {
	for denials, asks := range map[int]int{0: 1, 1: 0} {
		inFakeTime(t, Options{Denials: denials}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			tat := uint64(time.Now().UnixNano() + 60e9)
			s.knows("k", tat, true)
			e.AnswersBy(func(string) string {
				return celldtest.ArrayOf(celldtest.BulkOf(fmt.Sprint(tat)), celldtest.IntOf(time.Now().Unix()), celldtest.IntOf(0),
					celldtest.IntOf(0))
			})
			reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 0, 1, 60), Quantity: 1}}
			s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
			if !reqs[0].Decision.Limited || reqs[0].Err != nil || e.Count() != asks || s.stats.DenialsAnswered.Load() != int64(1-asks) {
				t.Errorf("%d remembered: %+v, asked %q", denials, reqs[0], e.Commands())
			}
		})
	}
}

// What a script answers is taken as it is meant: what the key held, a time, and whether it has decided. Other answers are errors.
func TestAnswersOfABucketsScript(t *testing.T) {
	at, bucket := int64(1_700_000_000), bucketOf(t, 9, 10, 10)
	field := string(linktest.Literal(t, "10/10s").Shape.AppendText(nil))
	for _, c := range []struct {
		name  string
		reply string
		tat   int64 // after atNS; -1: an error, -2: decided by a change
	}{
		{"no key", celldtest.ArrayOf("_\r\n", celldtest.IntOf(at), celldtest.IntOf(5), celldtest.IntOf(0)), 0},
		{"a TAT", celldtest.ArrayOf(celldtest.BulkOf("1700000002000000005"), celldtest.IntOf(at), celldtest.IntOf(5), celldtest.IntOf(0)), 2e9},
		{"undecided", celldtest.ArrayOf(celldtest.BulkOf("x"), celldtest.IntOf(at), celldtest.IntOf(5), celldtest.IntOf(1)), -2},
		{"WRONGTYPE", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", -2},
		{"no number", celldtest.ArrayOf(celldtest.BulkOf("x"), celldtest.IntOf(at), celldtest.IntOf(5), celldtest.IntOf(0)), -1},
		{"no array", celldtest.IntOf(1), -1},
		{"three", celldtest.ArrayOf("_\r\n", celldtest.IntOf(at), celldtest.IntOf(5)), -1},
		{"five", celldtest.ArrayOf("_\r\n", celldtest.IntOf(at), celldtest.IntOf(5), celldtest.IntOf(0), celldtest.IntOf(0)), -1},
		{"no seconds", celldtest.ArrayOf("_\r\n", celldtest.BulkOf("x"), celldtest.IntOf(5), celldtest.IntOf(0)), -1},
		{"no ns", celldtest.ArrayOf("_\r\n", celldtest.IntOf(at), celldtest.BulkOf("x"), celldtest.IntOf(0)), -1},
		{"no outcome", celldtest.ArrayOf("_\r\n", celldtest.IntOf(at), celldtest.IntOf(5), celldtest.BulkOf("x")), -1},
		{"another error", "-ERR unknown\r\n", -1},
	} {
		for _, takes := range []bool{false, true} {
			inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
				reply := c.reply
				if takes {
					reply = strings.ReplaceAll(reply, celldtest.BulkOf("1700000002000000005"),
						celldtest.BulkOf("limit=10/10s tat=1700000002000000005"))
				}
				e.AnswersBy(func(command string) string {
					switch {
					case strings.Contains(command, throttleScript.Digest), strings.Contains(command, takeScript.Digest):
						return reply
					case commits(command):
						return linktest.ViewReply("stored", -1)
					}
					return linktest.ViewReply("read", -1, nothing)
				})
				var err error
				var d cell.Decision
				if takes {
					call := s.plainly(t, 1, takeCall(t, "k", "10/10s"))
					d, err = call.reqs[0].Calls[0].Decision, call.reqs[0].Err
				} else {
					reqs := []store.Request{{Key: []byte("k"), Bucket: bucket, Quantity: 1}}
					s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
					d, err = reqs[0].Decision, reqs[0].Err
				}
				synctest.Wait()
				changed := s.stats.Changes.Load()
				if (err != nil) != (c.tat == -1) || (changed > 0) != (c.tat == -2) {
					t.Errorf("%s, %v: %+v, %v, %d changes, %q", c.name, takes, d, err, changed, e.Commands())
				}
				if c.tat >= 0 {
					if want := uint64(c.tat) + 1e9; d.ResetAfterNS != want || d.Limited {
						t.Errorf("%s, %v: %+v, want a reset after %d", c.name, takes, d, want)
					}
					if ns, ok := s.link.Clock("k").Lower(); !ok || ns != at*1e9+5 {
						t.Errorf("%s: the time is %d, %v", c.name, ns, ok)
					}
				}
				if s.queues.Busy("k") || s.queues.Bytes() != 0 {
					t.Errorf("%s: the queue stays", c.name)
				}
				name := ""
				if takes {
					name = field
				}
				if known, ok := s.tatCache.of("k").Get("k"); ok != (c.tat >= 0) || ok &&
					(known.field != name || known.tatNS != uint64(at*1e9+5+c.tat+1e9) || known.denied) {
					t.Errorf("%s, %v: %+v, %v is known", c.name, takes, known, ok)
				}
			})
		}
	}
}

// Equal operations in a row are one run.
func TestRuns(t *testing.T) {
	s := alone(t, "error")
	b, other := bucketOf(t, 9, 10, 10), bucketOf(t, 4, 10, 10)
	for _, c := range []struct {
		ops  []*call
		want string
	}{
		{nil, "[first]"},
		{[]*call{s.throttleOf("k", b, 1)}, "[first 10000000000 1000000000 1]"},
		{[]*call{s.throttleOf("k", b, 1), s.throttleOf("k", b, 1)}, "[first 10000000000 1000000000 2]"},
		{[]*call{s.throttleOf("k", b, 1), s.throttleOf("k", b, 2), s.throttleOf("k", b, 1), s.throttleOf("k", b, 1)},
			"[first 10000000000 1000000000 1 10000000000 2000000000 1 10000000000 1000000000 2]"},
		{[]*call{s.throttleOf("k", b, 1), s.throttleOf("k", other, 1)}, "[first 10000000000 1000000000 1 5000000000 1000000000 1]"},
	} {
		if got := fmt.Sprint(appendRuns([]string{"first"}, c.ops)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// A call whose quantity can never be decided is that error, unless the key is of another type.
func TestARefusedQuantity(t *testing.T) {
	for holds, wrong := range map[string]bool{nothing: false, celldtest.ArrayOf(celldtest.BulkOf("list"), celldtest.IntOf(-1)): true,
		"-NOAUTH Authentication required.\r\n": false} {
		inFakeTime(t, Options{Failures: modesOf("allow")}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			e.AnswersBy(func(string) string {
				if strings.HasPrefix(holds, "-") {
					return holds
				}
				return linktest.ViewReply("read", -1, holds)
			})
			reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: math.MaxInt64,
				Decision: cell.Decision{Limit: 9}}}
			s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
			r := reqs[0]
			if (r.Err == store.ErrWrongType) != wrong || r.Err == nil || linktest.IsDown(r.Err) || r.Decision != (cell.Decision{}) {
				t.Errorf("%q: %+v, %v", holds, r.Decision, r.Err)
			}
		})
	}
}

// A call that a script has left undecided is decided by a change, and answered as the failure has it where that fails.
func TestAChangeInPlaceOfAScript(t *testing.T) {
	for _, fails := range []bool{false, true} {
		inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			e.AnswersBy(func(command string) string {
				switch {
				case strings.Contains(command, throttleScript.Digest), strings.Contains(command, takeScript.Digest):
					return celldtest.ArrayOf(celldtest.BulkOf("x"), celldtest.IntOf(time.Now().Unix()), celldtest.IntOf(0),
						celldtest.IntOf(1))
				case fails:
					return "-NOAUTH Authentication required.\r\n"
				case commits(command):
					return linktest.ViewReply("stored", -1)
				}
				return linktest.ViewReply("read", -1, nothing)
			})
			reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 2}}
			s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
			r := reqs[0]
			if linktest.IsDown(r.Err) != fails || string(r.Key) != "k" || !fails && (r.Err != nil || r.Decision.Remaining != 8) {
				t.Errorf("fails %v: %+v, %v", fails, r.Decision, r.Err)
			}
			c := s.plainly(t, 2, takeCall(t, "l", "10/10s"))
			if r := c.reqs[0]; linktest.IsDown(r.Err) != fails || string(r.Calls[0].Key) != "l" ||
				!fails && (r.Err != nil || r.Taken.Granted != 2) {
				t.Errorf("fails %v: %+v, %v", fails, r.Taken, r.Err)
			}
			if n := s.stats.Scripts.Load(); n != 2 {
				t.Errorf("%d scripts are counted", n)
			}
		})
	}
}

// The field of a policy's state is by its name and epoch, and there is none where the policy has gone.
func TestTheFieldOfALimit(t *testing.T) {
	s, _ := byItself(t)
	if _, err := s.policies.SetPolicy("api", []cell.Limit{*linktest.Literal(t, "9/9s")}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	c := policyCall(s, "k", "api")
	if got := s.fieldOf(&c); !strings.HasPrefix(got, "@api") {
		t.Errorf("%q", got)
	}
	s.policies.DeletePolicy("api")
	if got := s.fieldOf(&c); got != "" {
		t.Errorf("it has gone, and is %q", got)
	}
	if s.timeArg() != "" {
		t.Error(s.timeArg())
	}
	if s.options.Time = func() int64 { return 77 }; s.timeArg() != "77" {
		t.Error(s.timeArg())
	}
}

// A call whose policy goes just then is decided by the limit that it found, and stores nothing.
func TestACallUnderAPolicyThatHasGone(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.AnswersBy(func(string) string { return linktest.ViewReply("read", -1, nothing) })
		if _, err := s.policies.SetPolicy("api", []cell.Limit{*linktest.Literal(t, "9/9s")}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		call := policyCall(s, "k", "api")
		s.policies.DeletePolicy("api")
		if r := s.plainly(t, 1, call).reqs[0]; r.Err != nil || r.Taken.Granted != 1 || r.Calls[0].Decision.Limit != 9 || commitsOf(e) != 0 {
			t.Errorf("%+v, %v, asked %q", r.Taken, r.Err, e.Commands())
		}
	})
}
