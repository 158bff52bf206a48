package remote

import (
	"testing"
	"time"

	"celld/store/remote/link"
)

// Who asks about all keys is answered at the deadline of its arrival, also where the client waits for a connection that another call makes,
// and where all turns are taken by others that wait for it.
func TestQuestionsAboutAllKeysDoNotWaitForAConnection(t *testing.T) {
	s := stuck(t)
	s.options.Timeout = time.Millisecond
	answered := make(chan error, 4*stepsAtOnce)
	for range stepsAtOnce {
		s.Scan(t.Context(), ScanOptions{Pattern: "*", Count: 10}, func(_ uint64, _ []string, err error) { answered <- err })
		s.Keys(t.Context(), "*", 1000, func(_ []string, err error) { answered <- err })
		s.Size(t.Context(), func(_ int64, err error) { answered <- err })
		s.RandomKey(t.Context(), func(_ string, _ bool, err error) { answered <- err })
	}
	for range cap(answered) {
		select {
		case err := <-answered:
			if !isDown(err) || err.Error() != link.CauseTimeout {
				t.Errorf("%v", err)
			}
		case <-time.After(patient / 2):
			t.Fatal("it waits for the connection")
		}
	}
}
