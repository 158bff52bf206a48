package remote

import (
	"testing"
	"testing/synctest"

	"celld/internal/celldtest"
)

// inFakeTime runs a test with a Store and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Store, e *celldtest.Ailing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, p := celldtest.InPipes(t)
		s := newTestStoreBy(t, o, p.Dial)
		test(t, s, e)
		s.waits.Close()
		s.link.Close()
	})
}
