package settings

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// A change of policies or rules has its own deadline, and not that of what goes before it: another change, or the question whether there is
// something new.
func TestChangesOfSettingsEndInTheirOwnTime(t *testing.T) {
	inFakeTime(t, Options{Timeout: 500 * time.Millisecond}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.Hangs(t)
		rule := policy.Rule{Deny: true, Pattern: "x"}
		for name, change := range map[string]func(done func(bool, error)){
			"SetPolicy": func(done func(bool, error)) {
				s.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "1/1s")}, policy.Options{}, done)
			},
			"DeletePolicy": func(done func(bool, error)) { s.DeletePolicy("p", done) },
			"PutRule":      func(done func(bool, error)) { s.PutRule(rule, 0, done) },
			"DeleteRule":   func(done func(bool, error)) { s.DeleteRule(rule, 0, done) },
		} {
			r := &s.policies
			if strings.HasSuffix(name, "Rule") {
				r = &s.rules
			}
			var answered atomic.Int64
			for range 5 {
				linktest.InOwnTime(t, s.Timeout, name,
					func(done func(error)) { change(func(_ bool, err error) { answered.Add(1); done(err) }) })
				celldtest.Pass(10 * time.Millisecond)
				read := r.read()
				go func() { <-read; answered.Add(1) }()
				celldtest.Pass(10 * time.Millisecond)
			}
			celldtest.Pass(time.Minute)
			if r.mu.Lock(); answered.Load() != 10 || r.busy || len(r.waiting) > 0 {
				t.Errorf("%s: %d of 10 are answered, and the next may be asked: %v", name, answered.Load(), !r.busy)
			}
			r.mu.Unlock()
		}
	})
}

// A change that is made, and is to read what others have changed before it, is answered by its deadline, too.
func TestAChangeThatReadsEndsInItsOwnTime(t *testing.T) {
	inFakeTime(t, Options{Timeout: 500 * time.Millisecond}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		forever := make(chan bool)
		t.Cleanup(func() { close(forever) })
		e.AnswersBy(func(command string) string {
			if strings.Contains(command, setPolicy.Digest) {
				time.Sleep(400 * time.Millisecond)
				return "*4\r\n:1\r\n$1\r\n5\r\n$1\r\n6\r\n$19\r\n1/1s 123 @p/gcra/1s\r\n"
			}
			if strings.Contains(command, readSettings.Digest) {
				<-forever
			}
			return ":1\r\n"
		})
		began := time.Now()
		set, err := linktest.Told(t, func(done func(bool, error)) {
			s.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "1/1s")}, policy.Options{}, done)
		})
		if took := time.Since(began); !set || err != nil || took > s.Timeout+linktest.Late {
			t.Errorf("%v, %v after %v", set, err, took)
		}
		if s.Policies.PolicyNamed("p") == nil {
			t.Error("this process does not have it")
		}
	})
}
