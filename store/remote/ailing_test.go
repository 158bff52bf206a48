package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tidwall/redcon"
)

// ailing is an engine whose answers a test chooses.
type ailing struct {
	socket string
	mu     sync.Mutex
	answer func(command string) string // the reply's bytes; "close": the connection is closed
	asked  []string                    // all commands but those of the connection
}

// newAiling runs one until the test ends. At first each command is answered by 1.
func newAiling(t *testing.T) *ailing {
	t.Helper()
	dir, err := os.MkdirTemp("", "ailing-")
	if err != nil {
		t.Fatal(err)
	}
	e := &ailing{socket: filepath.Join(dir, "s")}
	e.answers(":1\r\n")
	server := redcon.NewServerNetwork("unix", e.socket, e.serve, nil, nil)
	listens := make(chan error, 1)
	go func() { _ = server.ListenServeAndSignal(listens) }()
	if err := <-listens; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
	return e
}

func (e *ailing) serve(conn redcon.Conn, cmd redcon.Command) {
	var words []string
	for _, arg := range cmd.Args {
		words = append(words, string(arg))
	}
	switch words[0] {
	case "HELLO":
		conn.WriteRaw([]byte("%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"))
		return
	case "PING":
		conn.WriteString("PONG")
		return
	case "CLIENT":
		conn.WriteString("OK")
		return
	}
	e.mu.Lock()
	command, answer := strings.Join(words, " "), e.answer
	e.asked = append(e.asked, command)
	e.mu.Unlock()
	if text := answer(command); text != "close" {
		conn.WriteRaw([]byte(text))
		return
	}
	conn.Close()
}

func (e *ailing) answers(text string) { e.answersBy(func(string) string { return text }) }

func (e *ailing) answersBy(answer func(command string) string) {
	e.mu.Lock()
	e.answer = answer
	e.mu.Unlock()
}

// hangs has the engine answer nothing until the returned function is called, and then all of it.
func (e *ailing) hangs(t *testing.T) (resume func()) {
	wakes := make(chan struct{})
	resume = sync.OnceFunc(func() { close(wakes) })
	t.Cleanup(resume)
	e.answersBy(func(string) string { <-wakes; return ":1\r\n" })
	return resume
}

func (e *ailing) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// asks is how many commands have a text in them.
func (e *ailing) asks(text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, command := range e.asked {
		n += min(strings.Count(command, text), 1)
	}
	return n
}

func (e *ailing) probes() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, command := range e.asked {
		if strings.HasSuffix(command, "celld:probe") {
			all = append(all, command)
		}
	}
	return all
}

// keyOf is the key of a command with one, or of a probe.
func keyOf(command string) string {
	words := strings.Split(command, " ")
	if words[0] == "EVALSHA" {
		return words[3]
	}
	return words[1]
}

// askFor sends a write of a key, and waits for its outcome.
func (s *Store) askFor(key string, patience time.Duration) error {
	return s.outcome(&request{args: []string{"SET", "x"}, keys: []string{key}, deadline: time.Now().Add(patience)})
}

func (s *Store) outcome(r *request) error {
	answered := make(chan error, 1)
	r.done = func(_ rueidis.RedisMessage, err error) { answered <- err }
	s.send(r)
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

func (s *Store) byHand() *hands {
	h := &hands{at: time.Unix(1_700_000_000, 0)}
	s.failure.now, s.failure.after, s.failure.outage.since = h.now, h.after, h.at
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
