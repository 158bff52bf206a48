package link

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// keyOf is the key of a command with one, or of a probe.
func keyOf(command string) string {
	words := strings.Split(command, " ")
	if words[0] == "EVALSHA" {
		return words[3]
	}
	return words[1]
}

// askFor sends a write of a key, and waits for its outcome.
func (s *Link) askFor(key string, patience time.Duration) error {
	return s.outcome(&Request{Args: []string{"SET", "x"}, Keys: []string{key}, Deadline: time.Now().Add(patience)})
}

func (s *Link) outcome(r *Request) error {
	answered := make(chan error, 1)
	r.Done = func(_ rueidis.RedisMessage, err error) { answered <- err }
	s.Send(r)
	return <-answered
}

// patient is a deadline that only an engine misses that does not answer.
const patient = time.Minute

func isDown(err error) bool { return errors.As(err, new(*DownError)) }

// hands is a clock that a test moves, and the timers that go by it.
type hands struct {
	mu     sync.Mutex
	at     time.Time
	timers []timer
}

type timer struct {
	at time.Time
	do func()
}

func (s *Link) byHand() *hands {
	h := &hands{at: time.Unix(1_700_000_000, 0)}
	s.options.Now, s.options.After, s.outage.since = h.now, h.after, h.at
	return h
}

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) after(d time.Duration, do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timers = append(h.timers, timer{h.at.Add(d), do})
}

func (h *hands) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.timers)
}

// pass moves the clock, and has what is due done.
func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	h.at = h.at.Add(d)
	var due, later []timer
	for _, timer := range h.timers {
		if timer.at.After(h.at) {
			later = append(later, timer)
		} else {
			due = append(due, timer)
		}
	}
	h.timers = later
	h.mu.Unlock()
	for _, timer := range due {
		timer.do()
	}
}

// until polls for what comes from another goroutine.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patient {
			t.Fatalf("it has not come to this: %s", what)
		}
	}
}
