package queue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store/remote/link"
)

// operation notes what becomes of it.
type operation struct {
	Common
	kind    string
	sent    *Group // of which it is the first
	answers []error
}

func (o *operation) GoesWith(first Operation) bool { return o.kind == first.(*operation).kind }
func (o *operation) Send(b *Group)                 { o.sent = b }
func (o *operation) Answer(err error)              { o.answers = append(o.answers, err) }

func operationOf(key, kind string, left time.Duration) *operation {
	return &operation{Common: Common{Key: key, Deadline: time.Now().Add(left)}, kind: kind}
}

func up(string) error { return nil }

// One request for a key is under way at a time. What comes meanwhile goes with the next as far as it goes together, in its order. Other
// keys do not wait for that.
func TestOneRequestAtATime(t *testing.T) {
	q := New(1<<20, up)
	var all []*operation
	for _, kind := range []string{"a", "b", "b", "a", "b"} {
		o := operationOf("k", kind, time.Minute)
		all = append(all, o)
		q.Enqueue(o)
	}
	other := operationOf("other", "a", time.Minute)
	if q.Enqueue(other); other.sent == nil {
		t.Error("another key waits")
	}
	for _, together := range [][]*operation{all[:1], all[1:3], all[3:4], all[4:]} {
		b := together[0].sent
		if b == nil || len(b.Operations) != len(together) || !q.Busy("k") {
			t.Fatalf("%+v", b)
		}
		for i, o := range b.Operations {
			if o != Operation(together[i]) || len(together[i].answers) > 0 {
				t.Fatalf("%d: %+v", i, o)
			}
		}
		b.End(nil)
		for _, o := range together {
			if len(o.answers) != 1 || o.answers[0] != nil {
				t.Errorf("answered %v", o.answers)
			}
		}
	}
	if q.Busy("k") || !q.Busy("other") || q.Bytes() != bytesOf(other) {
		t.Errorf("busy %v, %d bytes wait", q.Busy("k"), q.Bytes())
	}
	again := operationOf("k", "a", time.Minute)
	if q.Enqueue(again); again.sent == nil {
		t.Error("the next is not sent")
	}
}

// One request decides so many operations at most, and the rest goes with the next.
func TestHowManyGoTogether(t *testing.T) {
	for n, left := range map[int]int{1: 0, Most: 0, Most + 1: 1} {
		q := New(1<<20, up)
		first := operationOf("k", "", time.Minute)
		q.Enqueue(first)
		var all []*operation
		for range n {
			o := operationOf("k", "", time.Minute)
			all = append(all, o)
			q.Enqueue(o)
		}
		first.sent.Next()
		if b := all[0].sent; len(b.Operations) != n-left || len(b.waiting) != left {
			t.Errorf("%d: %d go together, %d are left", n, len(b.Operations), len(b.waiting))
		}
	}
}

// What has waited too long is answered unsent, and the others go on.
func TestOperationsThatAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, late := range [][]bool{{false}, {true}, {true, false, true, false}, {true, true}} {
			q := New(1<<20, up)
			first := operationOf("k", "first", time.Hour)
			q.Enqueue(first)
			var all []*operation
			for j, late := range late {
				left := time.Duration(j+5) * time.Second
				if late {
					left = 5*time.Second - 1
				}
				o := operationOf("k", "", left)
				all = append(all, o)
				q.Enqueue(o)
			}
			celldtest.Pass(5 * time.Second)
			first.sent.End(nil)
			var sent *operation
			goOn := 0
			for j, late := range late {
				o, down := all[j], (*link.DownError)(nil)
				is := len(o.answers) == 1
				if is != late || late && (!errors.As(o.answers[0], &down) || down.Sent || down.Cause != link.ErrLate.Cause) {
					t.Errorf("%d: the operation %d: %v", i, j, o.answers)
				}
				if o.sent != nil {
					sent = o
				}
				if !late {
					goOn++
				}
			}
			if (sent != nil) != (goOn > 0) || sent != nil && (len(sent.sent.Operations) != goOn || len(sent.answers) > 0) {
				t.Errorf("%d: %d go on, sent %+v", i, goOn, sent)
			}
			if q.Busy("k") != (sent != nil) || sent == nil && q.Bytes() != 0 {
				t.Errorf("%d: busy %v, %d bytes", i, q.Busy("k"), q.Bytes())
			}
		}
	})
}

// What would be too much to wait is answered at once, to the byte, and what is asked of a key that is down. What an answer asks counts
// before what it answers is forgotten.
func TestHowMuchWaits(t *testing.T) {
	o := operationOf("k", "", time.Minute)
	one := bytesOf(o)
	if one != 1+operationBytes {
		t.Errorf("%d bytes", one)
	}
	for most, busy := range map[int64]bool{one: false, one - 1: true} {
		q := New(most, up)
		o := operationOf("k", "", time.Minute)
		q.Enqueue(o)
		if (len(o.answers) == 1 && o.answers[0] == link.ErrBusy) != busy || (o.sent == nil) != busy || busy && q.Bytes() != 0 {
			t.Errorf("%d bytes: %v, sent %v, and %d bytes wait", most, o.answers, o.sent != nil, q.Bytes())
		}
	}
	down := errors.New("down")
	q := New(1<<20, func(key string) error {
		if key == "k" {
			return down
		}
		return nil
	})
	if q.Enqueue(o); len(o.answers) != 1 || o.answers[0] != down || o.sent != nil || q.Bytes() != 0 {
		t.Errorf("%v, %d bytes", o.answers, q.Bytes())
	}
	next := operationOf("next", "", time.Minute)
	asks := &asking{operation: operationOf("o", "", time.Minute), ask: func() int64 { q.Enqueue(next); return q.Bytes() }}
	q.Enqueue(asks)
	if asks.sent.End(nil); asks.bytes != bytesOf(asks)+bytesOf(next) || q.Bytes() != bytesOf(next) {
		t.Errorf("%d bytes, then %d", asks.bytes, q.Bytes())
	}
}

// asking asks for more when it is answered.
type asking struct {
	*operation
	ask   func() int64
	bytes int64
}

func (a *asking) Answer(error) { a.bytes = a.ask() }
