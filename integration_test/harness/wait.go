package harness

import (
	"strconv"
	"testing"
	"time"
)

// Eventually waits until the condition holds, and fails the test when it does not within a while.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(ReplyTimeout); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", ReplyTimeout, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Again repeats a comparison that time passing between two calls may upset: a true difference is there each time.
func Again(t *testing.T, compare func(attempt string) string) {
	t.Helper()
	var difference string
	for i := range 10 {
		if difference = compare(strconv.Itoa(i)); difference == "" {
			return
		}
	}
	t.Error(difference)
}
