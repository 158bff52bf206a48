package keyspace

import (
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
)

const alike = 20 * time.Millisecond // of package link

// inOwnTime checks that a call fails by its own deadline. It may fail before, as another that is late takes the connection with it.
func inOwnTime(t *testing.T, s *Store, what string, ask func(done func(error))) {
	t.Helper()
	began := time.Now()
	ask(func(err error) {
		if took := time.Since(began); !isDown(err) || took > s.Timeout+alike {
			t.Errorf("%s: %v after %v", what, err, took)
		}
	})
}

// FLUSHALL deletes what a step has found within that step's time.
func TestAStepOfFlushEndsInItsOwnTime(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:", Timeout: 500 * time.Millisecond}, func(t *testing.T, s *Store, e *harness.Ailing) {
		forever := make(chan bool)
		t.Cleanup(func() { close(forever) })
		e.AnswersBy(func(command string) string {
			if strings.HasPrefix(command, "SCAN") {
				time.Sleep(400 * time.Millisecond)
				return "*2\r\n$1\r\n0\r\n*1\r\n$3\r\np:a\r\n"
			}
			<-forever
			return ":1\r\n"
		})
		ended := make(chan bool)
		inOwnTime(t, s, "FLUSHALL", func(done func(error)) {
			s.Flush(func(err error) { done(err); close(ended) })
		})
		<-ended
	})
}
