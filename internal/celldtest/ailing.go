package celldtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/redcon"
)

// Ailing is an engine whose answers a test chooses.
type Ailing struct {
	Socket string // its path
	mu     sync.Mutex
	answer func(command string) string // the reply's bytes; "close": the connection is closed
	takes  time.Duration               // from each command to its answer
	asked  []string                    // all commands but those of the connection
}

// NewAiling runs one until the test ends. At first each command is answered by 1.
func NewAiling(t *testing.T) *Ailing {
	t.Helper()
	dir, err := os.MkdirTemp("", "Ailing-")
	if err != nil {
		t.Fatal(err)
	}
	e := &Ailing{Socket: filepath.Join(dir, "s")}
	e.Answers(":1\r\n")
	server := redcon.NewServerNetwork("unix", e.Socket, e.serve, nil, nil)
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

func (e *Ailing) serve(conn redcon.Conn, cmd redcon.Command) {
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
	command, answer, takes := strings.Join(words, " "), e.answer, e.takes
	e.asked = append(e.asked, command)
	e.mu.Unlock()
	time.Sleep(takes)
	if text := answer(command); text != "close" {
		conn.WriteRaw([]byte(text))
		return
	}
	conn.Close()
}

func (e *Ailing) Answers(text string) { e.AnswersBy(func(string) string { return text }) }

func (e *Ailing) AnswersBy(answer func(command string) string) {
	e.mu.Lock()
	e.answer = answer
	e.mu.Unlock()
}

// Takes lets each answer take so long, in fake time.
func (e *Ailing) Takes(d time.Duration) {
	e.mu.Lock()
	e.takes = d
	e.mu.Unlock()
}

// Hangs holds all answers back until the returned function is called.
func (e *Ailing) Hangs(t *testing.T) (resume func()) {
	wakes := make(chan struct{})
	resume = sync.OnceFunc(func() { close(wakes) })
	t.Cleanup(resume)
	e.AnswersBy(func(string) string { <-wakes; return ":1\r\n" })
	return resume
}

// Commands are all but those of the connection.
func (e *Ailing) Commands() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

func (e *Ailing) Count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// Asks is how many commands have a text in them.
func (e *Ailing) Asks(text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, command := range e.asked {
		n += min(strings.Count(command, text), 1)
	}
	return n
}

func (e *Ailing) Probes() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, command := range e.asked {
		if strings.HasSuffix(command, "celld:probe") {
			all = append(all, command)
		}
	}
	return all
}

// Does lets an engine answer commands by their beginnings, and any other with 1.
func (e *Ailing) Does(answers map[string]string) {
	e.AnswersBy(func(command string) string {
		for begin, answer := range answers {
			if strings.HasPrefix(command, begin) {
				return answer
			}
		}
		return ":1\r\n"
	})
}
