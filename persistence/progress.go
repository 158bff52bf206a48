package persistence

import (
	"strconv"
	"time"
)

// logProgress logs how far loading is, every two seconds, until stop.
func (d *Disk) logProgress() (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p := d.Loading()
				d.log.Info("loading", "percent", strconv.FormatFloat(p.Percent(), 'f', 1, 64), "loaded_bytes", p.Done, "total_bytes", p.Total, "seconds_left", p.SecondsLeft())
			}
		}
	}()
	return func() { close(done) }
}

// Progress is how far loading is.
type Progress struct {
	Loading     bool
	BeganNS     int64
	Done, Total int64 // bytes
	nowNS       int64
}

// Percent of the bytes.
func (p Progress) Percent() float64 {
	if p.Total == 0 {
		return 0
	}
	return 100 * float64(p.Done) / float64(p.Total)
}

// SecondsLeft is an estimate by what it has taken so far, 1 at least.
func (p Progress) SecondsLeft() int64 {
	if p.Done == 0 {
		return 1
	}
	return max(1, int64(float64(p.nowNS-p.BeganNS)/1e9*float64(p.Total-p.Done)/float64(p.Done)))
}

// Loading tells how far Load is.
func (d *Disk) Loading() Progress {
	began := d.loading.beganNS.Load()
	return Progress{began != 0, began, d.loading.done.Load(), d.loading.total.Load(), d.o.Clock()}
}
