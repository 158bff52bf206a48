package waits

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/view"
)

// desk stands where the engine is: it decides what is asked of its keys when a test tells it to, by a table of its own. So tests of
// those who wait need no engine, and go by the fake time of a synctest bubble.
type desk struct {
	t *testing.T
	s *Store
	v *view.View

	mu      sync.Mutex
	waiting []*view.Change
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, s: newStore(t, "p:", nil)}
	d.s.waits.Close() // nobody listens
	d.s.waits.Enqueue = func(c *view.Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.waiting = append(d.waiting, c)
	}
	d.v = d.s.views.Blank(time.Now().UnixNano())
	return d
}

// asked is how many changes are asked for, once all other goroutines rest. A test looks at what these own without their locks, before and
// after. That is no race, as they run only while the test sleeps. asked takes the locks, so that the race detector sees it, too.
func (d *desk) asked() (n int) {
	synctest.Wait()
	d.s.waits.mu.Lock()
	defer d.s.waits.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

func (d *desk) sleep(long time.Duration) {
	d.asked()
	celldtest.Pass(long)
}

// take takes the next change.
func (d *desk) take() (c *view.Change) {
	d.t.Helper()
	if d.asked() == 0 {
		d.t.Fatal("nothing is asked")
	}
	c, d.waiting = d.waiting[0], d.waiting[1:]
	return c
}

func (d *desk) decide(c *view.Change) {
	d.v.NowNS = time.Now().UnixNano()
	c.Decide(d.v)
}

// one decides on one change.
func (d *desk) one() {
	d.t.Helper()
	c := d.take()
	d.decide(c)
	c.Done(nil)
}

// all decides on all changes, and those that follow.
func (d *desk) all() {
	d.t.Helper()
	for d.asked() > 0 {
		d.one()
	}
}

// plainly lets the table decide a call that does not wait.
func (d *desk) plainly(cost int64, o store.TakeOptions, calls ...store.Call) store.TakeRequest {
	d.v.NowNS = time.Now().UnixNano()
	o.Cost = cost
	r := store.TakeRequest{Calls: calls, TakeOptions: o}
	d.s.waits.Decide(d.v, &r, store.Access{NowNS: d.v.NowNS})
	return r
}

// spend takes all of a limit.
func (d *desk) spend(key, limit string) {
	d.t.Helper()
	c := takeCall(d.t, key, limit)
	if r := d.plainly(c.Limit.Capacity(), store.TakeOptions{}, c); r.Err != nil || r.Taken.Limited {
		d.t.Fatalf("%+v, %v", r.Taken, r.Err)
	}
}

// waits makes a call that waits for so long at most.
func (d *desk) waits(longest time.Duration, calls ...store.Call) *caller {
	return d.s.await(d.t, longest, 1, calls...)
}

func (d *desk) call(key, limit string) store.Call { return takeCall(d.t, key, limit) }

// is checks a caller's answer: one that has waited so long, since it came, and passes or not.
func (d *desk) is(c *caller, what string, after time.Duration, limited bool) {
	d.t.Helper()
	synctest.Wait()
	if c.waits() {
		d.t.Fatalf("%s: it still waits", what)
	}
	r := c.reqs[0]
	one := r.Calls[r.Taken.Binding].Decision
	if r.Err != nil || r.Taken.Limited != limited || one.Limited != limited || one.Limit == 0 || c.ended.Sub(c.began) != after {
		d.t.Errorf("%s: %+v, %+v after %v, %v; want limited %v after %v", what, r.Taken, one, c.ended.Sub(c.began), r.Err, limited, after)
	}
}

func (d *desk) line(key, limit string) *line {
	return d.s.waits.find(stateName{key: key, shape: d.call(key, limit).Limit.Shape})
}

// empty checks that nobody waits, and that nothing is left of those who have.
func (d *desk) empty() {
	d.t.Helper()
	synctest.Wait()
	w := d.s.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.room.Callers(); n != 0 || len(w.lines.OfKey)+w.named() > 0 || !w.room.HasRoom(10_000) {
		d.t.Errorf("%d wait for %d keys, %d named, and there are places: %v", n, len(w.lines.OfKey), w.named(), w.room.HasRoom(10_000))
	}
}

// named is how many waiters can be leaders.
func (w *Waits) named() int { return reflect.ValueOf(&w.room).Elem().FieldByName("named").Len() }

// pretend adds a line, and somebody who waits until over is called.
func (w *Waits) pretend() (l *line, over func()) {
	l = &line{waits: w, current: &try{}}
	w.lines.Add("", l)
	v := &waiter{}
	v.Request, v.Waker = &store.TakeRequest{}, new(wakes)
	_, _ = w.room.Enter(v)
	return l, func() { w.room.Leave(v) }
}

// atADesk runs a test in a bubble.
func atADesk(t *testing.T, test func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newDesk(t)) })
}
