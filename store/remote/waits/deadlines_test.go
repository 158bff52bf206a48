package waits

import (
	"testing"
	"time"

	"celld/internal/celldtest"
)

// One with WAIT that was not looked at in time has no further Timeout for that.
func TestAWaiterThatWasNotLookedAt(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.waits(0, d.call("k", tenSeconds))
		tried := d.take()
		celldtest.Pass(time.Millisecond)
		began := time.Now()
		d.waits(10*time.Millisecond, d.call("k", tenSeconds))
		celldtest.Pass(10*time.Millisecond + d.s.waits.Timeout)
		if d.asked() != 1 {
			t.Fatal("it is not refused")
		}
		if by := d.waiting[0].Deadline; by.After(began.Add(10*time.Millisecond + d.s.waits.Timeout)) {
			t.Errorf("it is answered by %v after its arrival", by.Sub(began))
		}
		d.decide(tried)
		tried.Done(nil)
		d.all()
	})
}
