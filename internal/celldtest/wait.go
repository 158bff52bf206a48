package celldtest

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Patience is how long a test waits for what must come: far above what a loaded machine takes.
const Patience = 3 * time.Minute

// Eventually waits until the condition holds, and fails the test when it does not within Patience. It asks often at first, and then each
// 16 ms, as the condition may cost a process much.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, 16*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}

// Again repeats a comparison that time passing between two calls may upset: a true difference is there each time. A loaded machine gets a
// minute, and ten attempts at least.
func Again(t *testing.T, compare func(attempt string) string) {
	t.Helper()
	var difference string
	for i, began := 0, time.Now(); i < 10 || time.Since(began) < time.Minute; i++ {
		if difference = compare(strconv.Itoa(i)); difference == "" {
			return
		}
	}
	t.Error(difference)
}

// Pass lets the fake time of a synctest bubble pass, and all that is due by then happen. Outside a bubble it panics, so it never waits.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
