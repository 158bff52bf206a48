package celldtest

import (
	"cmp"
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
	Socket string // where it listens: a path, or a host and port
	whole  bool   // the test also answers the commands of the connection

	server *redcon.Server
	mu     sync.Mutex
	answer func(command string) string // the reply's bytes; "none": nothing, nor anything after it; "close": the connection is closed
	takes  time.Duration               // from each command to its answer
	asked  []string                    // all commands, without those of the connection unless whole
}

// NewAiling runs one on a socket until the test ends. At first each command is answered by 1.
func NewAiling(t *testing.T) *Ailing {
	t.Helper()
	dir, err := os.MkdirTemp("", "Ailing-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := &Ailing{}
	e.Answers(":1\r\n")
	e.listen(t, "unix", filepath.Join(dir, "s"))
	return e
}

// NewAilingAt runs one on a port, such as 127.0.0.1:0, until the test ends. What is answered by "", also of the connection, it answers as a
// Redis without commands.
func NewAilingAt(t *testing.T, addr string, answer func(command string) string) *Ailing {
	t.Helper()
	e := &Ailing{whole: true, answer: answer}
	e.listen(t, "tcp", addr)
	return e
}

func (e *Ailing) listen(t *testing.T, network, addr string) {
	t.Helper()
	e.server = redcon.NewServerNetwork(network, addr, e.serve, nil, nil)
	listens := make(chan error, 1)
	go func() { _ = e.server.ListenServeAndSignal(listens) }()
	if err := <-listens; err != nil {
		t.Fatal(err)
	}
	e.Socket = e.server.Addr().String()
	t.Cleanup(e.Close)
}

// Close ends it.
func (e *Ailing) Close() { _ = e.server.Close() }

func (e *Ailing) serve(conn redcon.Conn, cmd redcon.Command) {
	var words []string
	for _, arg := range cmd.Args {
		words = append(words, string(arg))
	}
	command := strings.Join(words, " ")
	text := e.own(words[0], command)
	e.mu.Lock()
	answer, takes, asks := e.answer, e.takes, e.whole || text == ""
	if asks {
		e.asked = append(e.asked, command)
	}
	e.mu.Unlock()
	if asks {
		time.Sleep(takes)
		text = cmp.Or(answer(command), text)
	}
	switch {
	case text == "none" || conn.Context() != nil: // replies are in order
		conn.SetContext(e)
	case text == "close":
		conn.Close()
	default:
		conn.WriteRaw([]byte(text))
	}
}

// own is the answer to a command without the test; "": there is none.
func (e *Ailing) own(name, command string) string {
	switch {
	case name == "HELLO":
		return "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"
	case name == "PING":
		return "+PONG\r\n"
	case name == "CLIENT":
		return "+OK\r\n"
	case !e.whole:
		return ""
	case name == "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	case strings.HasSuffix(command, "celld:probe"):
		return "_\r\n"
	}
	return "-ERR unknown command '" + name + "', with args beginning with: \r\n"
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
