package remote

import (
	"container/heap"
	"time"
)

// deadlines are calls that wait, the one first that waits no longer than all others.
type deadlines []*waiter

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}
func (d *deadlines) Push(x any) { *d = append(*d, x.(*waiter)) }
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	v := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return v
}

func (d *deadlines) add(v *waiter) {
	v.place = len(*d)
	heap.Push(d, v)
}

func (d *deadlines) remove(v *waiter) {
	if v.place >= 0 {
		heap.Remove(d, v.place)
		v.place = -1
	}
}

// setTimer sets the timer at the first deadline.
func (w *waits) setTimer() {
	if len(w.deadlines) > 0 {
		w.timer.Reset(time.Until(w.deadlines[0].deadline))
	}
}

// expire refuses those whose deadline has come.
func (w *waits) expire() {
	w.mu.Lock()
	defer w.unlock()
	now := time.Now()
	for len(w.deadlines) > 0 && !w.deadlines[0].deadline.After(now) {
		v := w.deadlines[0]
		w.deadlines.remove(v)
		switch {
		case v.tried:
			v.expired = true
		case v.with != nil || !v.line.booked(v): // else its moment has come together with its deadline
			w.refuse(v)
		}
	}
	w.setTimer()
}
