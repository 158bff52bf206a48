package settings

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// The settings are asked for soon again until they are known, and then now and then, until the Store is closed. What the engine has refused
// of the file is set again with the next poll.
func TestPolls(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		var answers, takes, has atomic.Bool
		e.AnswersBy(func(command string) string {
			switch {
			case strings.Contains(command, setPolicy.Digest) && takes.Load():
				was := "5"
				if has.Swap(true) {
					was = "6"
				}
				return celldtest.ArrayOf(celldtest.IntOf(1), celldtest.BulkOf(was), celldtest.BulkOf("6"),
					celldtest.BulkOf("2/1s 6 @p/gcra/1s"))
			case strings.Contains(command, readSettings.Digest) && has.Load():
				return celldtest.ArrayOf(celldtest.BulkOf(versionField), celldtest.BulkOf("6"), celldtest.BulkOf(sinceField),
					celldtest.BulkOf("5"), celldtest.BulkOf("file"), celldtest.BulkOf("2/1s 6 @p/gcra/1s"))
			case strings.Contains(command, readSettings.Digest) && answers.Load():
				return celldtest.ArrayOf(celldtest.BulkOf(versionField), celldtest.BulkOf("5"), celldtest.BulkOf(sinceField),
					celldtest.BulkOf("5"))
			case strings.Contains(command, setPolicy.Digest):
				return "-NOREPLICAS Not enough good replicas to write.\r\n"
			}
			return "-ERR odd\r\n"
		})
		sets := func() int {
			synctest.Wait()
			return e.Asks(setPolicy.Digest)
		}
		passes := func(d time.Duration) int {
			synctest.Wait()
			before := e.Asks(readSettings.Digest)
			celldtest.Pass(d)
			if p, r := e.Asks(readSettings.Digest+" 1 "+policiesKey), e.Asks(readSettings.Digest+" 1 "+rulesKey); p != r {
				t.Errorf("%d reads of policies, %d of rules", p, r)
			}
			return (e.Asks(readSettings.Digest) - before) / 2
		}
		file := []*policy.Policy{policy.New("file", *linktest.Literal(t, "2/1s"))}
		if _, err := s.KeepPolicies(file, nil); err != nil || sets() != 0 {
			t.Errorf("%v, set %d times", err, sets())
		}
		s.Start()
		if n := passes(10*firstPoll - 1); n != 9 || sets() != 0 {
			t.Errorf("asked %d times before they are known, set %d times", n, sets())
		}
		answers.Store(true)
		passes(2 * firstPoll)
		if !s.policies.loaded() || !s.rules.loaded() || sets() == 0 {
			t.Errorf("they are not known, or the file is not set, %d times", sets())
		}
		before := sets()
		if n := passes(4 * pollEvery); n != 4 || sets()-before != 4 {
			t.Errorf("asked %d times, set %d times", n, sets()-before)
		}
		takes.Store(true)
		passes(pollEvery)
		before = sets()
		if passes(2 * pollEvery); sets() != before || s.EpochOf(s.Policies.PolicyNamed("file").Limits[0]) != 6 {
			t.Errorf("set %d times more", sets()-before)
		}
		if _, err := s.KeepPolicies(file, nil); err != nil || sets() != before+1 {
			t.Errorf("a file that comes later is set %d times, %v", sets()-before, err)
		}
		if polls, reads := int(s.polls.Load()), e.Asks(readSettings.Digest+" 1 "+policiesKey); polls != reads {
			t.Errorf("%d polls begin, %d reads", polls, reads)
		}
		s.Close()
		if n := passes(time.Minute); n != 0 {
			t.Errorf("it is closed, and asks %d times", n)
		}
	})
}

// Who waits for the settings does so for one timeout at most.
func TestAwaitingSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(Options{})
		for took, want := range map[time.Duration]time.Duration{0: 0, time.Millisecond: time.Millisecond, time.Hour: s.Timeout} {
			began, ended := time.Now(), make(chan struct{})
			time.AfterFunc(took, func() { close(ended) })
			s.await(ended)
			if is := time.Since(began); is != want {
				t.Errorf("%v: it waits for %v", took, is)
			}
		}
		celldtest.Pass(time.Hour)
	})
}
