package link

import (
	"net"
	"strings"
	"sync"
	"testing"

	"celld/internal/celldtest"

	"github.com/tidwall/redcon"
)

// fakeEngine answers as a test likes, and counts what it receives.
type fakeEngine struct {
	addr   string
	server *redcon.Server

	mu       sync.Mutex
	answer   func(command string) string // the raw reply; "": as Redis answers, "none", "close": the connection is closed
	received []string
}

// hello is what Redis 7 answers to HELLO 3.
const hello = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"

// startFake runs an engine until the test ends. addr is 127.0.0.1:0, or where one was before.
func startFake(t *testing.T, addr string, answer func(command string) string) *fakeEngine {
	t.Helper()
	f := &fakeEngine{answer: answer}
	f.server = redcon.NewServerNetwork("tcp", addr, f.serve, nil, nil)
	signal := make(chan error, 1)
	go f.server.ListenServeAndSignal(signal)
	if err := <-signal; err != nil {
		t.Fatal(err)
	}
	f.addr = f.server.Addr().String()
	t.Cleanup(func() { f.server.Close() })
	return f
}

func (f *fakeEngine) serve(conn redcon.Conn, cmd redcon.Command) {
	words := make([]string, len(cmd.Args))
	for i, arg := range cmd.Args {
		words[i] = string(arg)
	}
	line := strings.Join(words, " ")
	f.mu.Lock()
	f.received = append(f.received, line)
	reply := f.answer(line)
	f.mu.Unlock()
	switch {
	case reply == "none" || conn.Context() != nil: // nor anything after it: replies are in order
		conn.SetContext(f)
	case reply == "close":
		conn.Close()
	case reply != "":
		conn.WriteRaw([]byte(reply))
	case strings.HasPrefix(line, "HELLO"):
		conn.WriteRaw([]byte(hello))
	case strings.HasPrefix(line, "CLUSTER"):
		conn.WriteError("ERR This instance has cluster support disabled")
	case strings.HasSuffix(line, "celld:probe"):
		conn.WriteNull()
	case line == "PING":
		conn.WriteString("PONG")
	default:
		conn.WriteError("ERR unknown command '" + words[0] + "', with args beginning with: ")
	}
}

// Count is how many commands with this beginning have come.
func (f *fakeEngine) Count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, line := range f.received {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

var eventually = celldtest.Eventually

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func (f *fakeEngine) setAnswer(answer func(command string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}
