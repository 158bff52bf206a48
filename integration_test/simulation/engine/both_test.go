package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/integration_test/simulation/network"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/resp/wire"
)

// both sends commands to an Engine and to a redis-server, whose clocks stand, and compares the replies byte for byte.
type both struct {
	t        *testing.T
	sim      *enginetest.Engine
	addr     string // of redis-server
	clock    *os.File
	mu       sync.Mutex
	nowNS    int64
	compared map[string]int        // replies, by the command's name in lower case
	samples  map[string][][][]byte // calls of scripts, by their digests
	texts    map[string][]byte     // scripts that redis-server does not know yet
	late     atomic.Int64          // how long the next reply to SET takes, in ns
}

// newBoth starts both, each empty.
func newBoth(t *testing.T) *both {
	b := &both{t: t, compared: map[string]int{}, samples: map[string][][][]byte{}, texts: map[string][]byte{}}
	library, file := filepath.Join(t.TempDir(), "clock.so"), filepath.Join(t.TempDir(), "clock")
	harness.Tool(t, "gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c", "-ldl")
	var err error
	if b.clock, err = os.Create(file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clock.Close() })
	b.at(1_800_000_000_123_456_000)
	b.sim = enginetest.Start(t, enginetest.Options{Clock: func(int) int64 { return b.nowNS }})
	f := engines.Redis(t).With("LD_PRELOAD="+library, "CLOCK_FILE="+file).Alone(t,
		"--hash-max-listpack-value", "1000000", "--hash-max-listpack-entries", "1000000") // so HGETALL keeps the order
	b.addr = f.Nodes[0].Addr
	return b
}

// at sets the clocks.
func (b *both) at(ns int64) {
	b.nowNS = ns
	if _, err := b.clock.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(ns)), 0); err != nil {
		b.t.Fatal(err)
	}
}

// half is a connection to one.
type half struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func newHalf(t *testing.T, conn net.Conn) *half { return &half{conn, t, bufio.NewReader(conn)} }

// ask sends bytes, and reads a number of replies.
func (h *half) ask(frame []byte, n int) string {
	var raw bytes.Buffer
	_, err := h.Write(frame)
	for range n {
		err = errors.Join(err, harness.CopyReply(&raw, h.r))
	}
	if err != nil {
		h.t.Errorf("%.2000q: %v", frame, err)
	}
	return raw.String()
}

// two are connections to both.
type two struct {
	*both
	halves [2]*half // to the Engine, and to redis-server
}

func (b *both) dial() *two {
	sim, err := b.sim.Dial(context.Background(), b.sim.Addrs()[0])
	if err != nil {
		b.t.Fatal(err)
	}
	real, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	return &two{b, [2]*half{newHalf(b.t, sim), newHalf(b.t, real)}}
}

func (c *two) close() {
	for _, h := range c.halves {
		h.Close()
	}
}

// unlike is what is not compared: the number of a connection in HELLO, and the words of Lua's own errors.
var unlike = regexp.MustCompile(`\$2\r\nid\r\n:\d+\r\n|(^-ERR user_script:\d+: |new function\): user_script:).*?( script: |\r)`)

func comparable(reply string) string { return unlike.ReplaceAllString(reply, "$1") }

// do sends a command, compares the replies, and returns that of the Engine.
func (c *two) do(args ...[]byte) (reply string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.ToLower(string(args[0]))
	c.compared[name]++
	if (name == "eval" || name == "evalsha") && len(args) > 3 {
		c.sample(args)
	}
	reply = c.halves[0].ask(wire.AppendCommand(nil, args...), 1)
	real := c.halves[1].ask(wire.AppendCommand(nil, args...), 1)
	if name != "info" { // the simulation has few of its fields
		c.same(args, reply, real)
	}
	return reply
}

func (c *two) same(args [][]byte, sim, real string) {
	if comparable(sim) != comparable(real) {
		c.t.Errorf("%.2000q:\n%.2000q, redis-server:\n%.2000q", args, sim, real)
	}
}

// line is do for words without spaces. more is how many replies come beside the first.
func (c *two) line(line string, more int) {
	args := bytes.Fields([]byte(line))
	c.do(args...)
	c.same(args, c.halves[0].ask(nil, more), c.halves[1].ask(nil, more))
}

// sample keeps some calls of each script.
func (b *both) sample(args [][]byte) {
	sha := string(args[1])
	if strings.EqualFold(string(args[0]), "eval") {
		sha = celldtest.Digest(string(args[1]))
	}
	all := b.samples[sha]
	if len(all) >= 200 {
		return
	}
	call := [][]byte{[]byte("EVALSHA"), []byte(sha)}
	for _, arg := range args[2:] {
		call = append(call, slices.Clone(arg))
	}
	b.samples[sha] = append(all, call)
}

// tapped is a connection whose scripts are kept as samples.
type tapped struct {
	net.Conn
	both *both
	in   []byte
}

func (c *tapped) Write(p []byte) (int, error) {
	c.in = append(c.in, p...)
	for {
		args, size, _ := wire.ParseCommand(c.in, nil)
		if size == 0 {
			break
		}
		if string(args[0]) == "EVAL" {
			c.both.mu.Lock()
			c.both.sample(args)
			c.both.texts[celldtest.Digest(string(args[1]))] = bytes.Clone(args[1])
			c.both.mu.Unlock()
		}
		c.in = c.in[size:]
	}
	return c.Conn.Write(p)
}

// serve is a Dial whose connections are to both. Messages come from the Engine alone.
func (b *both) serve(context.Context, string) (net.Conn, error) {
	ours, theirs := network.Pair("10.0.255.1:40000", "10.0.255.2:6379")
	c := b.dial()
	go func() {
		defer c.close()
		defer theirs.Close()
		var in []byte
		buffer := make([]byte, 64<<10)
		for {
			n, err := theirs.Read(buffer)
			if err != nil {
				return
			}
			in = append(in, buffer[:n]...)
			for {
				args, size, wrong := wire.ParseCommand(in, nil)
				if wrong != "" {
					b.t.Error(wrong)
				}
				if size == 0 {
					break
				}
				replies := c.do(args...)
				if string(args[0]) == "SET" {
					time.Sleep(time.Duration(b.late.Swap(0)))
				}
				if _, err := theirs.Write([]byte(replies)); err != nil {
					return
				}
				in = in[size:]
			}
		}
	}()
	return ours, nil
}
