package remote

import (
	"testing"
	"time"
)

// An engine that is far has four pipelines under way, and one that is near has one until much waits.
func TestMostPipelines(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		took    []time.Duration // by pipelines 0.4 s apart
		waiting int
		want    int
	}{
		{nil, 1, 1},
		{[]time.Duration{nearby / 2}, 1, 1},
		{[]time.Duration{nearby / 2}, muchWaits, 2},
		{[]time.Duration{nearby / 2}, 9 * muchWaits, inFlight},
		{[]time.Duration{nearby * 2}, 1, inFlight},
		{[]time.Duration{nearby * 2, nearby / 2, nearby * 2}, 1, 1},
		{[]time.Duration{nearby / 2, nearby * 2, nearby * 2, nearby * 2}, 1, inFlight},
	} {
		l := lane{waiting: make([]*request, test.waiting)}
		for i, d := range test.took {
			at := now.Add(time.Duration(i) * 400 * time.Millisecond)
			l.took(at.Add(-d), at)
		}
		if got := l.most(); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}
