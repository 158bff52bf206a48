package resp

import (
	"slices"
	"testing"
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
		delete(w.commands.byName, name)
	}
	return w, w.connect(), w.connect()
}

// holds checks what holds after whatever was sent.
func (w *world) holds(t *testing.T, other *peer) {
	t.Helper()
	if n := w.stats.panics.Load(); n != 0 {
		t.Fatalf("panic: %s", w.log)
	}
	other.want("PING", "+PONG\r\n")
	if n, most := w.store.Len(w.nowNS), w.cfg.MaxKeys(); int64(n) > most && most > 0 {
		t.Fatalf("%d keys of at most %d", n, most)
	}
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
		return c.tr.take()
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
