package session

import (
	"slices"
	"strings"
	"testing"

	"celld/resp/session/sessiontest"
)

// fuzzWorld is a small server, a session to drive, and another that must be served all the same. It has no command that
// answers no two runs alike. Its directory is given, since making one for each input takes half of the time.
func fuzzWorld(t testing.TB, dir string) (w *world, c, other *peer) {
	w = newWorldIn(t, dir, "max-keys", "16", "proto-max-bulk-len", "4096", "proto-max-multibulk-len", "64")
	for _, name := range []string{
		"randomkey", "info", // chance and the machine's memory are in the reply
		"monitor",                        // what others see of a batch comes when it is over, so that pieces do show
		"client",                         // LIST tells how many bytes of a piece are kept
		"save", "bgsave", "bgrewriteaof", // are the disk's, in its own time
	} {
		w.Commands.Remove(name)
	}
	return w, w.connect(), w.connect()
}

// holds checks what holds after whatever was sent.
func (w *world) holds(t *testing.T, other *peer) {
	t.Helper()
	if n := w.Stats.Panics.Load(); n != 0 {
		t.Fatalf("panic: %s", w.log)
	}
	other.want("PING", "+PONG\r\n")
	if n, most := w.Store.Len(w.nowNS), w.Config.MaxKeys.Get(); int64(n) > most && most > 0 {
		t.Fatalf("%d keys of at most %d", n, most)
	}
}

// hostilePackets are seeds for FuzzSession.
var hostilePackets = []string{
	"*1\r\n$9223372036854775807\r\n", "*1\r\n$-2\r\n", "*9223372036854775807\r\n", "*-9223372036854775808\r\n", "*1\r\n$4\r\nPING\r\n",
	"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n5\r\n", "PING\r\n", "\"", "'\r\n", "*1\r\n$1\r\n\r\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
	"\x00\r\n", "$5\r\nhello\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "MULTI\r\nCL.THROTTLE k 1 1 1\r\nEXEC\r\n",
	"CLIENT REPLY SKIP\r\nPING\r\nPING\r\n", "HELLO 3\r\nGET x\r\nRESET\r\n",
	strings.Repeat(sessiontest.Frame("CL.THROTTLE", "k", "15", "30", "60"), 3) + sessiontest.Frame("CL.THROTTLE", "other", "15", "30", "60") + sessiontest.Frame("cl.throttle", "k", "15", "30", "60"),
	strings.Repeat(sessiontest.Frame("CL.THROTTLE", "k", "1", "1", "60", "18446744074"), 2) + strings.Repeat(sessiontest.Frame("CL.THROTTLE", "k", "1", "1", "60", "3"), 2) + "MULTI\r\n" + sessiontest.Frame("CL.THROTTLE", "k", "1", "1", "60", "3") + "EXEC\r\n",
	"CL.THROTTLE k 15 30 60 1\r\n", "CL.THROTTLE k 9223372036854775807 1 9223372036 -9223372036854775808\r\n",
	"SET k 18446744073709551615 PX 1\r\nTTL k\r\n", "SCAN 18446744073709551615 COUNT 9223372036854775807\r\n", "KEYS [\r\n",
	"WATCH a a b\r\nMULTI\r\nSET a 1\r\nEXEC\r\n", "CONFIG SET timeout 1 timeout 2\r\n",
	"EXPIRE k 9223372036854775807\r\nPEXPIRE k -9223372036854775808\r\n", "COMMAND GETKEYS SET\r\nCOMMAND DOCS client|id\r\n",
	"RENAME a a\r\nOBJECT HELP\r\n", "QUIT\r\nPING\r\n",
}

// FuzzSession drives a whole session: any bytes, in any pieces, give the same replies, never panic, and leave a server
// that goes on answering others.
func FuzzSession(f *testing.F) {
	for _, packet := range hostilePackets {
		f.Add([]byte(packet), 1, 3)
	}
	dir := f.TempDir()
	play := func(t *testing.T, stream []byte, sizes []int) string {
		w, c, other := fuzzWorld(t, dir)
		for len(stream) > 0 && c.end == open {
			n := len(stream)
			if len(sizes) > 0 {
				n, sizes = min(max(sizes[0], 1), n), sizes[1:]
			}
			c.Serve(slices.Clone(stream[:n]))
			stream = stream[n:]
		}
		w.holds(t, other)
		return c.tr.Take()
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b int) {
		whole := play(t, stream, nil)
		for _, sizes := range [][]int{{a, b}, slices.Repeat([]int{1}, len(stream))} {
			if split := play(t, stream, sizes); split != whole {
				t.Fatalf("%q\nwhole %q\nin %v %q", stream, whole, sizes[:min(2, len(sizes))], split)
			}
		}
	})
}
