package resp

import (
	"slices"
	"testing"
)

// FuzzSession drives a whole session: any bytes, in any pieces, give the same replies, never panic, and leave a server
// that goes on answering others.
func FuzzSession(f *testing.F) {
	for _, packet := range hostilePackets {
		f.Add([]byte(packet), 1, 3)
	}
	play := func(t *testing.T, stream []byte, sizes []int) string {
		w := newWorld(t, "max-keys", "16", "proto-max-bulk-len", "4096", "proto-max-multibulk-len", "64")
		for _, name := range []string{
			"randomkey", "info", // chance and the machine's memory are in the reply
			"monitor", // what others see of a batch comes when it is over, so that pieces do show
			"client",  // LIST tells how many bytes of a piece are kept
		} {
			delete(w.commands.byName, name)
		}
		c := w.connect()
		for len(stream) > 0 && c.end == open {
			n := len(stream)
			if len(sizes) > 0 {
				n, sizes = min(max(sizes[0], 1), n), sizes[1:]
			}
			c.Serve(slices.Clone(stream[:n]))
			stream = stream[n:]
		}
		if n := w.stats.panics.Load(); n != 0 {
			t.Fatalf("panic: %s", w.log)
		}
		w.connect().want("PING", "+PONG\r\n")
		if n := w.store.Len(w.nowNS); n > 16 {
			t.Fatalf("%d keys of at most 16", n)
		}
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
