package load

import "testing"

// The estimate takes as long for each remaining byte as for those that are done.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		done, total, tookNS, seconds int64
		percent                      float64
	}{
		{0, 0, 0, 1, 0}, {0, 100, 5e9, 1, 0}, {10, 100, 2e9, 18, 10}, {50, 100, 40e9, 40, 50}, {99, 100, 1e9, 1, 99},
		{100, 100, 5e9, 1, 100},
	} {
		p := Progress{BeganNS: t0, Done: c.done, Total: c.total, nowNS: t0 + c.tookNS}
		if percent, seconds := p.Percent(), p.SecondsLeft(); percent != c.percent || seconds != c.seconds {
			t.Errorf("%+v: %v %%, %d seconds left", p, percent, seconds)
		}
	}
}
