package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
)

// t0 is when most tests begin: 2100-01-01 00:00 UTC, so that an engine whose own clock is behind removes nothing.
const (
	t0     int64 = 4_102_444_800_000_000_000
	second int64 = 1_000_000_000
)

// Run tests Limiters that hold nothing yet: newLimiter returns another each time. They must keep a hundred keys, and take Access.NowNS as
// their time.
func Run(t *testing.T, newLimiter func() store.Limiter) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, func() *asker)
	}{
		{"random throttles", throttleHistories},
		{"random takes", takeHistories},
		{"no more than burst and rate", bounds},
		{"order within a batch", order},
		{"peek", peek},
		{"refund", refund},
		{"clamps", clamps},
		{"force", force},
		{"large numbers", largeNumbers},
		{"several limits", severalLimits},
		{"several keys", severalKeys},
		{"errors", refusals},
		{"expiry", expiry},
		{"changed limits", changedLimits},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, func() *asker { return &asker{limiter: newLimiter(), nowNS: t0} })
		})
	}
}

// asker asks a Limiter, and waits for its answers.
type asker struct {
	limiter store.Limiter
	nowNS   int64
}

type waker chan struct{}

func (w waker) Wake() { w <- struct{}{} }

func (k *asker) pass(ns int64) { k.nowNS += ns }

// throttle asks for all at once. Keys that the Limiter must have copied are overwritten while it decides.
func (k *asker) throttle(reqs ...store.Request) []store.Request {
	woken := make(waker, 1)
	keys, given := make([][]byte, len(reqs)), make([][]byte, len(reqs))
	for i := range reqs {
		keys[i], given[i] = reqs[i].Key, bytes.Clone(reqs[i].Key)
		reqs[i].Key = given[i]
	}
	if !k.limiter.ThrottleBatch(reqs, store.Access{NowNS: k.nowNS}, woken) {
		spoil(given)
		<-woken
	}
	for i := range reqs {
		reqs[i].Key = keys[i]
	}
	return reqs
}

// take is throttle for Takes, whose keys are lost.
func (k *asker) take(reqs ...store.TakeRequest) []store.TakeRequest {
	woken := make(waker, 1)
	var given [][]byte
	for i := range reqs {
		for j := range reqs[i].Calls {
			c := &reqs[i].Calls[j]
			c.Key = bytes.Clone(c.Key)
			given = append(given, c.Key)
		}
	}
	if !k.limiter.TakeBatch(reqs, store.Access{NowNS: k.nowNS}, woken) {
		spoil(given)
		<-woken
	}
	return reqs
}

func spoil(keys [][]byte) {
	for _, key := range keys {
		for i := range key {
			key[i] = '#'
		}
	}
}

// failer is what testing.TB and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// limit's parameters are CL.THROTTLE's.
func limit(t failer, maxBurst, count, period int64) cell.Bucket {
	t.Helper()
	l, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func literal(t failer, text string) *cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// calls are one key's, under each of the limits.
func calls(t failer, key string, limits ...string) (calls []store.Call) {
	t.Helper()
	for _, text := range limits {
		calls = append(calls, store.Call{Key: []byte(key), Limit: literal(t, text)})
	}
	return calls
}

// takes asks for one Take, which must not fail.
func (k *asker) takes(t failer, o store.TakeOptions, calls []store.Call) store.TakeRequest {
	t.Helper()
	r := k.take(store.TakeRequest{Calls: calls, TakeOptions: o})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

func (k *asker) throttles(t failer, key string, l cell.Bucket, quantity int64) cell.Decision {
	t.Helper()
	r := k.throttle(store.Request{Key: []byte(key), Bucket: l, Quantity: quantity})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r.Decision
}

// order: the calls of a batch are decided one after the other, also those for one key.
func order(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 9, 1, 60)
	var reqs []store.Request
	for i := range store.MaxTakes {
		reqs = append(reqs, store.Request{Key: fmt.Append(nil, "key:", i%2), Bucket: l, Quantity: 1})
	}
	for i, r := range k.throttle(reqs...) {
		before := int64(i / 2)
		if r.Err != nil || r.Decision.Limited != (before >= 10) || r.Decision.Remaining != max(9-before, 0) {
			t.Fatalf("throttle %d: %+v, %v", i, r.Decision, r.Err)
		}
	}
	var takes []store.TakeRequest
	for i := range store.MaxTakes {
		takes = append(takes,
			store.TakeRequest{Calls: calls(t, fmt.Sprint("take:", i%2), "10/1m"), TakeOptions: store.TakeOptions{Cost: 1}})
	}
	for i, r := range k.take(takes...) {
		before := int64(i / 2)
		if r.Err != nil || r.Taken.Limited != (before >= 10) || r.Calls[0].Decision.Remaining != max(9-before, 0) {
			t.Fatalf("take %d: %+v, %v", i, r.Taken, r.Err)
		}
	}
}

// peek: a peek changes nothing, and sees what a call would.
func peek(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 4, 1, 60)
	for range 3 {
		if d := k.throttles(t, "new", l, 0); d.Limited || d.Remaining != 5 || d.ResetAfterNS != 0 {
			t.Fatalf("%+v", d)
		}
		r := k.takes(t, store.TakeOptions{Cost: 5, Mode: cell.Peek}, calls(t, "other", "5/1m"))
		if r.Taken.Limited || r.Taken.Granted != 0 ||
			r.Calls[0].Decision.Remaining != 5 {
			t.Fatalf("%+v", r.Taken)
		}
	}
	k.throttles(t, "new", l, 5)
	k.takes(t, store.TakeOptions{Cost: 5}, calls(t, "other", "5/1m"))
	for range 3 {
		if d := k.throttles(t, "new", l, 0); d.Limited || d.Remaining != 0 {
			t.Fatalf("%+v", d)
		}
		if r := k.takes(t, store.TakeOptions{Cost: 1, Mode: cell.Peek}, calls(t, "other", "5/1m")); !r.Taken.Limited ||
			r.Taken.RetryAfterNS != uint64(12*second) {
			t.Fatalf("%+v", r.Taken)
		}
	}
}

// refund: a negative quantity, or cost, gives back, up to full, and makes no key.
func refund(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 4, 1, 60)
	k.throttles(t, "k", l, 5)
	if d := k.throttles(t, "k", l, -2); d.Limited || d.Remaining != 2 {
		t.Errorf("%+v", d)
	}
	if d := k.throttles(t, "k", l, -1000); d.Remaining != 5 || d.ResetAfterNS != 0 {
		t.Errorf("%+v", d)
	}
	if d := k.throttles(t, "k", l, 5); d.Limited || d.Remaining != 0 {
		t.Errorf("what was given back beyond full is %+v", d)
	}
	for _, text := range []string{"5/1m", "5/1m,algo=window", "5/1m,algo=slide", "5/1m,algo=log"} {
		give := func(n int64) int64 {
			return -k.takes(t, store.TakeOptions{Cost: -n}, calls(t, "t", text)).Taken.Granted
		}
		if n := give(2); n != 0 {
			t.Errorf("%s: %d given back of nothing", text, n)
		}
		k.takes(t, store.TakeOptions{Cost: 5}, calls(t, "t", text))
		if n := give(2); n != 2 {
			t.Errorf("%s: %d given back of 2", text, n)
		}
		if n := give(1000); n != 3 {
			t.Errorf("%s: %d given back of 3", text, n)
		}
		if r := k.takes(t, store.TakeOptions{Cost: 6, UpTo: true}, calls(t, "t", text)); r.Taken.Granted != 5 {
			t.Errorf("%s: %+v", text, r.Taken)
		}
	}
}

// clamps: a call that can never pass says so and changes nothing, and no number leaves its range.
func clamps(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 4, 1, 60)
	if d := k.throttles(t, "k", l, 6); !d.Limited || d.RetryAfterNS != cell.Never || d.Remaining != 5 {
		t.Errorf("%+v", d)
	}
	if d := k.throttles(t, "none", limit(t, -1, 1, 60), 1); !d.Limited || d.Limit != 0 || d.RetryAfterNS != cell.Never {
		t.Errorf("%+v", d)
	}
	if r := k.takes(t, store.TakeOptions{Cost: cell.MaxCost}, calls(t, "t", "5/1m")); !r.Taken.Limited || r.Taken.Granted != 0 ||
		r.Taken.RetryAfterNS != cell.Never {
		t.Errorf("%+v", r.Taken)
	}
	if r := k.takes(t, store.TakeOptions{Cost: cell.MaxCost, UpTo: true}, calls(t, "t", "5/1m", "3/1s")); r.Taken.Limited ||
		r.Taken.Granted != 3 {
		t.Errorf("%+v", r.Taken)
	}
	if r := k.takes(t, store.TakeOptions{Cost: 2, UpTo: true}, calls(t, "t", "5/1m")); r.Taken.Limited || r.Taken.Granted != 2 {
		t.Errorf("%+v", r.Taken)
	}
}

// largeNumbers: limits count to 2^53 - 1, to the last one. FORCE beyond that is an error, and takes nothing.
func largeNumbers(t *testing.T, newAsker func() *asker) {
	k := newAsker()
	for _, options := range []string{"window", "slide", "slide,buckets=2"} {
		text := "9007199254740991/1h,algo=" + options
		take := func(mode cell.Mode, cost int64) store.TakeRequest {
			return k.take(store.TakeRequest{Calls: calls(t, text, text), TakeOptions: store.TakeOptions{Cost: cost, Mode: mode}})[0]
		}
		left := func(r store.TakeRequest, want int64) {
			t.Helper()
			if got := r.Calls[0].Decision.Remaining; r.Err != nil || r.Taken.Limited || got != want {
				t.Errorf("%s: %d left, limited %v, %v; want %d left", text, got, r.Taken.Limited, r.Err, want)
			}
		}
		left(take(cell.Take, 1<<32), cell.MaxCost-1<<32)
		left(take(cell.Take, cell.MaxCost-1<<32-1), 1)
		if r := take(cell.Take, 2); !r.Taken.Limited || r.Calls[0].Decision.Remaining != 1 {
			t.Errorf("%s: %+v", text, r.Taken)
		}
		if r := take(cell.Force, 2); r.Err != store.ErrTooMuch {
			t.Errorf("%s: %v, want %v", text, r.Err, store.ErrTooMuch)
		}
		if r := take(cell.Take, -cell.MaxCost/2); r.Err != nil || r.Taken.Granted != -cell.MaxCost/2 {
			t.Errorf("%s: %d given back, %v", text, -r.Taken.Granted, r.Err)
		}
		left(take(cell.Force, cell.MaxCost/2+1), 0)
	}
	if r := k.take(store.TakeRequest{Calls: calls(t, "g", "5/1h", "9007199254740991/1h,algo=window"),
		TakeOptions: store.TakeOptions{Cost: 1 << 52, Mode: cell.Force}})[0]; r.Err != store.ErrTooMuch {
		t.Errorf("%v: half of it is taken", r.Err)
	}
	r := k.takes(t, store.TakeOptions{Cost: 1}, calls(t, "g", "9007199254740991/1h,algo=window"))
	if d := r.Calls[0].Decision; d.Remaining != cell.MaxCost-1 {
		t.Errorf("after an error: %+v", d)
	}
}

// force: it always grants, and what it takes beyond the limit is a debt.
func force(t *testing.T, newAsker func() *asker) {
	k := newAsker()
	for _, text := range []string{"5/5s", "5/5s,algo=window"} {
		if r := k.takes(t, store.TakeOptions{Cost: 8, Mode: cell.Force}, calls(t, text, text)); r.Taken.Limited || r.Taken.Granted != 8 ||
			r.Calls[0].Decision.Remaining != 0 {
			t.Errorf("%s: %+v", text, r.Taken)
		}
		if r := k.takes(t, store.TakeOptions{Cost: 1}, calls(t, text, text)); !r.Taken.Limited || r.Taken.RetryAfterNS == 0 {
			t.Errorf("%s: %+v", text, r.Taken)
		}
	}
}

// severalLimits: all are taken or none.
func severalLimits(t *testing.T, newAsker func() *asker) {
	k := newAsker()
	both := func() []store.Call { return calls(t, "k", "2/1s", "3/1m", "100/1h,shadow") }
	for i, want := range []bool{false, false, true} {
		if r := k.takes(t, store.TakeOptions{Cost: 1}, both()); r.Taken.Limited != want {
			t.Fatalf("call %d: %+v", i, r.Taken)
		}
	}
	if r := k.takes(t, store.TakeOptions{}, both()); r.Calls[1].Decision.Remaining != 1 || r.Calls[2].Decision.Remaining != 98 {
		t.Errorf("a call that was denied has taken: %+v", r.Calls)
	}
	k.pass(second)
	if r := k.takes(t, store.TakeOptions{Cost: 2, UpTo: true}, both()); r.Taken.Granted != 1 || r.Taken.Binding != 1 {
		t.Errorf("%+v", r.Taken)
	}
	r := k.takes(t, store.TakeOptions{Cost: 1}, both())
	if d := r.Calls[1].Decision; !r.Taken.Limited || r.Taken.Binding != 1 || r.Taken.RetryAfterNS != d.RetryAfterNS {
		t.Errorf("%+v", r.Taken)
	}
}

// severalKeys: all are taken or none, also if one key is named twice.
func severalKeys(t *testing.T, newAsker func() *asker) {
	k := newAsker()
	pairs := func() []store.Call {
		return append(calls(t, "a", "10/1m"), append(calls(t, "b", "4/1m"), calls(t, "a", "10/1m")...)...)
	}
	for i := range 4 {
		r := k.takes(t, store.TakeOptions{Cost: 1}, pairs())
		if want := int64(10 - 2*(i+1)); r.Taken.Limited || r.Calls[2].Decision.Remaining != want {
			t.Fatalf("call %d: %+v, %+v", i, r.Taken, r.Calls[2].Decision)
		}
	}
	if r := k.takes(t, store.TakeOptions{Cost: 1}, pairs()); !r.Taken.Limited || r.Taken.Binding != 1 {
		t.Errorf("%+v", r.Taken)
	}
	if r := k.takes(t, store.TakeOptions{}, calls(t, "a", "10/1m")); r.Calls[0].Decision.Remaining != 2 {
		t.Errorf("a call that was denied has taken: %+v", r.Calls[0].Decision)
	}
	more := pairs() // 3 of a, where 2 are left, and nothing of b
	more[0].Own, more[0].Cost = true, 2
	if r := k.takes(t, store.TakeOptions{Cost: 1}, append(more[:1], more[2])); !r.Taken.Limited || r.Taken.Binding != 1 {
		t.Errorf("%+v", r.Taken)
	}
	request := func(cost int64, calls []store.Call) store.TakeRequest {
		return store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost}}
	}
	batch := k.take(request(1, calls(t, "a", "10/1m")), request(1, append(calls(t, "a", "10/1m"), calls(t, "c", "5/1m")...)),
		request(1, calls(t, "a", "10/1m")))
	if batch[0].Taken.Limited || batch[1].Taken.Limited || !batch[2].Taken.Limited {
		t.Errorf("%+v", batch)
	}
	batch = k.take(request(-1, calls(t, "a", "10/1m")), request(2, calls(t, "a", "10/1m")), request(1, calls(t, "a", "10/1m")))
	if batch[0].Taken.Granted != -1 || !batch[1].Taken.Limited || batch[2].Taken.Limited {
		t.Errorf("%+v", batch)
	}
	if r := k.takes(t, store.TakeOptions{}, calls(t, "c", "5/1m")); r.Calls[0].Decision.Remaining != 4 {
		t.Errorf("%+v", r.Calls[0].Decision)
	}
}

// refusals: a refused call gets an error, and changes nothing.
func refusals(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 4, 1, 60)
	k.throttles(t, "tat", l, 2)
	k.takes(t, store.TakeOptions{Cost: 2}, calls(t, "limits", "5/1m"))
	r := k.throttle(
		store.Request{Key: []byte("tat"), Bucket: l, Quantity: 1 << 62},
		store.Request{Key: []byte("limits"), Bucket: l, Quantity: 1},
		store.Request{Key: []byte("tat"), Bucket: l, Quantity: 0},
	)
	var outOfRange *cell.RangeError
	if !errors.As(r[0].Err, &outOfRange) || outOfRange.Param != "quantity" || outOfRange.Value != 1<<62 {
		t.Errorf("%v", r[0].Err)
	}
	if !errors.Is(r[1].Err, store.ErrWrongType) || r[2].Err != nil || r[2].Decision.Remaining != 3 {
		t.Errorf("%v; %+v, %v", r[1].Err, r[2].Decision, r[2].Err)
	}
	one := store.TakeOptions{Cost: 1}
	takes := k.take(
		store.TakeRequest{Calls: calls(t, "tat", "5/1m"), TakeOptions: one},
		store.TakeRequest{Calls: append(calls(t, "limits", "5/1m"), calls(t, "tat", "5/1m")...), TakeOptions: one},
		store.TakeRequest{Calls: calls(t, "limits", "5/1m", "6/1m"), TakeOptions: one},
		store.TakeRequest{Calls: calls(t, "tat", "5/1m"), TakeOptions: store.TakeOptions{Cost: -1}},
		store.TakeRequest{Calls: calls(t, "limits", "5/1m"), TakeOptions: one},
	)
	for i, want := range []error{store.ErrWrongType, store.ErrWrongType, store.ErrTwoLimits, store.ErrWrongType, nil} {
		if !errors.Is(takes[i].Err, want) {
			t.Errorf("take %d: %v, want %v", i, takes[i].Err, want)
		}
	}
	if d := takes[4].Calls[0].Decision; d.Remaining != 2 {
		t.Errorf("%+v", d)
	}
}

// expiry: a key is as new when it is full again, and not before.
func expiry(t *testing.T, newAsker func() *asker) {
	k, l := newAsker(), limit(t, 4, 1, 60)
	d := k.throttles(t, "k", l, 5)
	r := k.takes(t, store.TakeOptions{Cost: 5}, calls(t, "t", "5/1m", "5/1s,algo=window"))
	if d.ResetAfterNS != uint64(300*second) || r.Taken.ResetAfterNS != uint64(60*second) {
		t.Fatalf("%+v, %+v", d, r.Taken)
	}
	k.pass(60*second - 1)
	if r := k.takes(t, store.TakeOptions{}, calls(t, "t", "5/1m")); r.Calls[0].Decision.Remaining != 4 {
		t.Errorf("%+v", r.Calls[0].Decision)
	}
	k.pass(1)
	if d := k.throttles(t, "t", limit(t, 0, 1, 1), 1); d.Limited { // it may hold the other kind
		t.Errorf("%+v", d)
	}
	if d := k.throttles(t, "k", l, 0); d.Remaining != 1 {
		t.Errorf("%+v", d)
	}
	k.pass(240 * second)
	if r := k.takes(t, store.TakeOptions{Cost: 1}, calls(t, "k", "5/1m")); r.Taken.Limited {
		t.Errorf("%+v", r.Taken)
	}
}
