package keyspace

import (
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store/remote/link/linktest"
)

// FLUSHALL deletes what a step has found within that step's time.
func TestAStepOfFlushEndsInItsOwnTime(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:", Timeout: 500 * time.Millisecond}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
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
		linktest.InOwnTime(t, s.Timeout, "FLUSHALL", func(done func(error)) {
			s.Flush(func(err error) { done(err); close(ended) })
		})
		<-ended
	})
}
