package load

import (
	"strconv"
	"sync/atomic"
	"time"
)

// logProgress logs the progress of loading every two seconds until stop is called.
func (l *Loader) logProgress() (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p := l.Progress()
				l.Log.Info("loading", "percent", strconv.FormatFloat(p.Percent(), 'f', 1, 64), "loaded_bytes", p.Done,
					"total_bytes", p.Total, "seconds_left", p.SecondsLeft())
			}
		}
	}()
	return func() { close(done) }
}

// Progress is the progress of Load.
type Progress struct {
	BeganNS     int64 // Unix nanoseconds; 0: it has not begun
	Done, Total int64 // bytes
	nowNS       int64
}

// Percent is the share of bytes that are loaded, 0 to 100.
func (p Progress) Percent() float64 {
	if p.Total == 0 {
		return 0
	}
	return 100 * float64(p.Done) / float64(p.Total)
}

// SecondsLeft estimates the rest from the speed so far. It is at least 1.
func (p Progress) SecondsLeft() int64 {
	if p.Done == 0 {
		return 1
	}
	return max(1, int64(float64(p.nowNS-p.BeganNS)/1e9*float64(p.Total-p.Done)/float64(p.Done)))
}

// counts are those of a Load under way.
type counts struct {
	beganNS     atomic.Int64
	done, total atomic.Int64 // bytes
}

// Progress returns the progress of Load.
func (l *Loader) Progress() Progress {
	return Progress{l.progress.beganNS.Load(), l.progress.done.Load(), l.progress.total.Load(), l.Clock()}
}
