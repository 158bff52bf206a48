package grpc

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"celld/internal/celldtest"
)

// Calls of all connections hold no more than MaxHeld, whether they are unfinished, wait for others, or their answers wait for windows. One
// more is refused, and calls that need no room are answered. What a client holds is given back when it goes.
func TestAllCallsAreBounded(t *testing.T) {
	send := func(c *client, id uint32, message []byte, end bool) {
		c.headers(id, false, echoPath)
		for rest := message; len(rest) > 0; rest = rest[min(len(rest), frameSize):] {
			_ = c.WriteData(id, end && len(rest) <= frameSize, rest[:min(len(rest), frameSize)])
		}
	}
	unfinished := func(c *client, id uint32) {
		send(c, id, celldtest.GRPCMessage(strings.Repeat("x", MaxMessage))[:MaxMessage], false)
	}
	answered := func(c *client, id uint32) { send(c, id, celldtest.GRPCMessage(strings.Repeat("x", frameSize-5)), true) }
	waiting := func(c *client, id uint32) {
		send(c, id, celldtest.GRPCMessage("wait"+strings.Repeat("x", frameSize-9)), true)
	}
	const refused = "grpc-status=8 grpc-message=calls hold 32 MB, and may not hold more"
	for name, of := range map[string]struct {
		begin func(*client, uint32)
		waits bool
		want  string
	}{
		"unfinished": {unfinished, false, refused}, "answered": {answered, false, "ENHANCE_YOUR_CALM"}, "waiting": {waiting, true, refused},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Waits: of.waits}, func(w *world) {
				var clients []*client
				over := false
				for !over && len(clients) < 12 {
					c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
					clients = append(clients, c)
					_ = c.WriteWindowUpdate(0, 1<<30)
					for id := uint32(1); id < 2*MaxCalls && !over; id += 2 {
						of.begin(c, id)
						over = strings.Contains(strings.Join(c.got(), "\n"), of.want)
					}
				}
				held := w.held.Load()
				if !over || held > MaxHeld || held < MaxHeld*9/10 {
					t.Errorf("%d connections hold %d bytes, refused: %v", len(clients), held, over)
				}
				if !of.waits {
					w.hello().alive(1)
				}
				for _, c := range clients {
					_ = c.Conn.Close()
				}
				close(w.goOn)
				if celldtest.Pass(time.Millisecond); w.held.Load() != 0 {
					t.Errorf("%d bytes are held by nobody", w.held.Load())
				}
			})
		})
	}
}

// A call ends whose client neither sends the rest nor takes the answer, though the connection is alive. A stream that says nothing stays.
func TestCallsThatWaitForTheirClient(t *testing.T) {
	play(t, Options{Waits: true}, func(w *world) {
		c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 6})
		c.call(1, echoPath, "wait")
		c.headers(3, false, echoPath)
		_ = c.WriteData(3, false, []byte("\x00"))
		c.call(5, echoPath, "long")
		c.got()
		ended := map[string]int{}
		for minute := 1; minute <= 4; minute++ {
			celldtest.Pass(silence)
			_ = c.WritePing(true, [8]byte{})
			for _, frame := range c.got() {
				ended[frame] = minute
			}
		}
		for _, reset := range []string{"RST_STREAM 3 CANCEL", "RST_STREAM 5 CANCEL"} {
			if ended[reset] < 2 || ended[reset] > 3 {
				t.Errorf("%s in minute %d of %v", reset, ended[reset], ended)
			}
		}
		if w.held.Load() != int64(len("wait")) {
			t.Errorf("%d bytes are held", w.held.Load())
		}
		w.goOn <- struct{}{}
		c.want("HEADERS 1 200", "DATA 1 "+string(celldtest.GRPCMessage("wait"))[:6])
	})
}
