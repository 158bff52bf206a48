//go:build linux

package main

import (
	"fmt"
	"os"
	"time"
)

// step is one row on one peer in one round.
type step struct {
	round int
	row   *row
	peer  *peer
}

// progress writes a line a step to standard error, with the time that is left: the estimates of the steps to come,
// scaled by how those that are done compared with theirs.
type progress struct {
	steps         []step
	began         time.Time
	spent, ahead  float64 // estimated seconds
	stepStartedAt time.Time
}

func newProgress(steps []step) *progress {
	p := &progress{steps: steps, began: time.Now(), stepStartedAt: time.Now()}
	for _, s := range steps {
		p.ahead += s.row.work.seconds(s.peer)
	}
	fmt.Fprintf(os.Stderr, "%d steps, about %s\n", len(steps), minutes(p.ahead))
	return p
}

func (p *progress) done(i int, result sample, err error) {
	s := p.steps[i]
	estimate := s.row.work.seconds(s.peer)
	p.spent += estimate
	p.ahead -= estimate
	left := p.ahead * time.Since(p.began).Seconds() / p.spent
	outcome := result.String()
	if err != nil {
		outcome = "FAILED: " + err.Error()
	}
	fmt.Fprintf(os.Stderr, "[%d/%d, %s left] round %d, %s, %s (%.1f s): %s\n",
		i+1, len(p.steps), minutes(left), s.round+1, s.row.name, s.peer.name, time.Since(p.stepStartedAt).Seconds(), outcome)
	p.stepStartedAt = time.Now()
}

func minutes(seconds float64) string {
	if seconds < 100 {
		return fmt.Sprintf("%.0f s", max(seconds, 0))
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
