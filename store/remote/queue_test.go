package remote

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
)

// held are the requests that a Store would have sent.
type held struct{ waiting []*link.Request }

func (s *Store) holdLane() *held {
	h := &held{}
	s.send = func(r *link.Request) { h.waiting = append(h.waiting, r) }
	return h
}

func throttleOf(t *testing.T, s *Store, key string, w store.Waker) (*operation, *store.Request) {
	r := &store.Request{Key: []byte(key), Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}
	return &operation{key: key, throttle: r, deadline: time.Now().Add(time.Minute), batch: newBatch(0, w)}, r
}

// One request decides so many operations at most, and the rest goes with the next.
func TestHowManyGoTogether(t *testing.T) {
	for n, left := range map[int]int{1: 0, mostTogether: 0, mostTogether + 1: 1} {
		s := newStore(Options{Policies: &policy.Set{}})
		l := s.holdLane()
		q := &queue{key: "k"}
		for range n {
			o, _ := throttleOf(t, s, "k", make(signal, 1))
			q.waiting = append(q.waiting, o)
		}
		if s.next(q); len(q.waiting) != left || len(l.waiting) != 1 {
			t.Errorf("%d: %d are left, and %d requests are sent", n, len(q.waiting), len(l.waiting))
		}
	}
}

func TestWhatGoesTogether(t *testing.T) {
	s := newStore(Options{Policies: &policy.Set{}})
	change := &operation{change: &change{}}
	throttle, _ := throttleOf(t, s, "k", nil)
	long, _ := throttleOf(t, s, "k", nil)
	long.throttle.Bucket = bucketOf(t, 9, 1, 365*86400)
	takeOf := func(limit string) *operation {
		return &operation{take: &store.TakeRequest{Calls: []store.Call{takeCall(t, "k", limit)}, TakeOptions: store.TakeOptions{Cost: 1}}}
	}
	take, same, other := takeOf("5/1s"), takeOf("5/1s"), takeOf("6/1s")
	kinds := []*operation{change, throttle, long, take, other}
	for i, a := range kinds {
		for j, b := range kinds {
			if a.goesWith(b) != (i == j) {
				t.Errorf("%d goes with %d: %v", i, j, i != j)
			}
		}
	}
	if !take.goesWith(same) {
		t.Error("two of the same limit do not go together")
	}
}

// Calls that have waited too long are answered unsent, and the others go on.
func TestCallsThatAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(Options{Policies: &policy.Set{}})
		l := s.holdLane()
		for i, c := range []struct {
			deadlines []time.Duration
			late      []bool
		}{
			{[]time.Duration{0}, []bool{false}},
			{[]time.Duration{-1}, []bool{true}},
			{[]time.Duration{-1, 0, -5, 1}, []bool{true, false, true, false}},
		} {
			q := &queue{key: "k"}
			sh := s.queues.shardOf("k")
			sh.keys["k"] = q
			var ops []*operation
			var requests []*store.Request
			for _, d := range c.deadlines {
				o, r := throttleOf(t, s, "k", make(signal, 1))
				o.deadline = time.Now().Add(d)
				ops, requests = append(ops, o), append(requests, r)
				s.queues.bytes.Add(o.bytes())
			}
			l.waiting = nil
			s.decide(q, ops)
			sent := false
			for j, late := range c.late {
				down := (*DownError)(nil)
				if is := errors.As(requests[j].Err, &down); is != late || late && (down.Sent || down.Cause != link.ErrLate.Cause) {
					t.Errorf("%d: the call %d: %v", i, j, requests[j].Err)
				}
				sent = sent || !late
			}
			if (len(l.waiting) == 1) != sent || (sh.keys["k"] == nil) == sent {
				t.Errorf("%d: %d requests, and the queue is there: %v", i, len(l.waiting), sh.keys["k"] != nil)
			}
			if i == 1 && s.queues.bytes.Load() != (&operation{key: "k"}).bytes() { // with that of the one before
				t.Errorf("%d bytes wait", s.queues.bytes.Load())
			}
		}
	})
}

// What would be too much to wait is answered at once, to the byte.
func TestHowMuchWaits(t *testing.T) {
	one := (&operation{key: "k"}).bytes()
	if one != 1+operationBytes {
		t.Errorf("%d bytes", one)
	}
	for most, busy := range map[int64]bool{one: false, one - 1: true} {
		s := newStore(Options{Policies: &policy.Set{}, MaxWaiting: most})
		l := s.holdLane()
		w := make(signal, 1)
		o, r := throttleOf(t, s, "k", w)
		s.ask(o)
		if (r.Err == ErrBusy) != busy || (len(l.waiting) == 0) != busy || busy && s.queues.bytes.Load() != 0 {
			t.Errorf("%d bytes: %v, %d requests, and %d bytes wait", most, r.Err, len(l.waiting), s.queues.bytes.Load())
		}
	}
}

// A bucket whose debt scripts cannot compute is a change, also of several calls.
func TestWhatScriptsCannotCompute(t *testing.T) {
	s := newStore(Options{Policies: &policy.Set{}})
	l := s.holdLane()
	o, _ := throttleOf(t, s, "k", make(signal, 1))
	o.throttle.Bucket = bucketOf(t, 9, 1, 365*86400)
	s.decide(&queue{key: "k"}, []*operation{o})
	if len(l.waiting) != 1 || l.waiting[0].Script != openScript {
		t.Errorf("%d requests", len(l.waiting))
	}
}
