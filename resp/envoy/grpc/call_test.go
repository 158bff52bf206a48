package grpc

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"

	"celld/internal/celldtest"
)

// A client gets as much of an answer as it takes.
func TestFlowControl(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
		c.call(1, echoPath, "abcde")
		c.want("HEADERS 1 200", "DATA 1 \x00\x00\x00\x00")
		c.call(3, echoPath, "")
		c.want("HEADERS 3 200", "DATA 3 \x00\x00\x00\x00")
		_ = c.WriteWindowUpdate(3, 1)
		c.want("DATA 3 \x00", "HEADERS 3 end grpc-status=0")
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2})
		c.want("SETTINGS ack")
		_ = c.WriteWindowUpdate(1, 2) // 2 fewer were taken back
		_ = c.WriteWindowUpdate(1, 3)
		c.want("DATA 1 \x05ab")
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
		c.want("SETTINGS ack", "DATA 1 c")
		_ = c.WriteWindowUpdate(1, 100)
		c.want("DATA 1 de", "HEADERS 1 end grpc-status=0")

		// One that is not wanted any more is not sent.
		c.call(5, echoPath, "gone")
		c.want("HEADERS 5 200", "DATA 5 \x00\x00\x00")
		_ = c.WriteRSTStream(5, http2.ErrCodeCancel)
		_ = c.WriteWindowUpdate(5, 100)
		_ = c.WriteWindowUpdate(0, 100)
		c.want()
		c.call(7, echoPath, "")
		c.want("HEADERS 7 200", "DATA 7 \x00\x00\x00")
	})
}

// An answer that waits for a window is forgotten with its call, so that a client cannot make the connection grow.
func TestNothingWaitsForGoneCalls(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.headers(1, false, echoPath)
		_ = c.WriteData(1, false, celldtest.GRPCMessage("first"))
		_ = c.WriteData(1, true, nil)
		for id := uint32(3); id < 2000; id += 2 {
			c.call(id, echoPath, "x")
			_ = c.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		c.got()
		if s := w.conn(); len(s.calls) != 1 || len(s.waiting) != 1 || s.waiting[0].in != nil {
			t.Errorf("%d calls are there, %d wait, and the first holds %q", len(s.calls), len(s.waiting), s.waiting[0].in)
		}
		_ = c.WriteWindowUpdate(1, 100)
		c.want(echoed(1, "first")[1:]...)
	})
}

// Whatever the windows are, answers come whole, and never more bytes than the client takes.
func TestWindows(t *testing.T) {
	play(t, Options{}, func(w *world) {
		rapid.Check(struct{ rapid.TB }{w.T}, func(r *rapid.T) { // the deadline of a test is not known in a bubble
			first := rapid.IntRange(0, 1<<17).Draw(r, "window")
			c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(first)})
			defer c.Conn.Close()
			whole, windows := usualWindow, map[uint32]int{}
			want, got, ended := map[uint32]string{}, map[uint32]*strings.Builder{}, 0
			next := uint32(1)
			look := func() {
				for _, frame := range c.got() {
					var id uint32
					kind, rest, _ := strings.Cut(frame, " ")
					number, data, _ := strings.Cut(rest, " ")
					_, _ = fmt.Sscan(number, &id)
					switch {
					case kind == "DATA":
						if len(data) > min(whole, windows[id], frameSize) {
							r.Fatalf("%d bytes are sent, where the windows are %d and %d", len(data), whole, windows[id])
						}
						got[id].WriteString(data)
						whole -= len(data)
						windows[id] -= len(data)
					case strings.HasPrefix(data, "end"):
						ended++
						if got[id].String() != want[id] {
							r.Fatalf("answer %d has %d bytes, and not %d", id, got[id].Len(), len(want[id]))
						}
					}
				}
			}
			r.Repeat(map[string]func(*rapid.T){
				"call": func(r *rapid.T) {
					if next > 40 {
						return
					}
					text := strings.Repeat(string(rune('a'+next%26)), rapid.IntRange(0, 50_000).Draw(r, "size"))
					windows[next], got[next] = first, &strings.Builder{}
					want[next] = string(celldtest.GRPCMessage(text))
					c.headers(next, false, echoPath)
					for at, all := 0, want[next]; at < len(all); at += frameSize {
						end := min(at+frameSize, len(all))
						_ = c.WriteData(next, end == len(all), []byte(all[at:end]))
					}
					next += 2
					look()
				},
				"window": func(r *rapid.T) {
					more := rapid.IntRange(1, 100_000).Draw(r, "more")
					id := uint32(0)
					if next > 1 && rapid.Bool().Draw(r, "of a call") {
						id = uint32(rapid.IntRange(0, int(next)/2-1).Draw(r, "call")*2 + 1)
						windows[id] += more
					} else {
						whole += more
					}
					_ = c.WriteWindowUpdate(id, uint32(more))
					look()
				},
				"settings": func(r *rapid.T) {
					was := first
					first = rapid.IntRange(0, 1<<17).Draw(r, "window")
					for id := range windows {
						windows[id] += first - was
					}
					_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(first)})
					look()
				},
			})
			for id := uint32(1); id < next; id += 2 {
				_ = c.WriteWindowUpdate(id, 1<<20)
				windows[id] += 1 << 20
			}
			whole += 1 << 24
			_ = c.WriteWindowUpdate(0, 1<<24)
			look()
			if ended != len(want) {
				r.Fatalf("%d of %d calls are answered", ended, len(want))
			}
		})
	})
}

// Where a method waits, others are answered. The calls that run are bounded, with those that nobody wants any more: a call waits for these.
func TestWaits(t *testing.T) {
	play(t, Options{Waits: true}, func(w *world) {
		c := w.hello()
		c.call(1, echoPath, "wait")
		c.alive(3)
		c.call(5, echoPath, "panic")
		c.want("HEADERS 5 end 200 grpc-status=13 grpc-message=internal error")
		w.goOn <- struct{}{}
		c.want(echoed(1, "wait")...)
		id := uint32(7)
		for range MaxCalls {
			c.call(id, echoPath, "wait")
			_ = c.WriteRSTStream(id, http2.ErrCodeCancel)
			id += 2
		}
		c.got()
		c.call(id, echoPath, "panic")
		_ = c.WriteRSTStream(id, http2.ErrCodeCancel) // before it has run
		c.call(id+2, echoPath, "later")
		c.call(id+4, repeatPath, "later")
		c.want()
		if s := w.conn(); s.running != MaxCalls || len(s.queue) != 2 {
			t.Errorf("%d calls run, and %d are queued", s.running, len(s.queue))
		}
		w.goOn <- struct{}{}
		c.want(append(echoed(id+2, "later"), echoed(id+4, "later")[:2]...)...)
		w.goOn <- struct{}{}
		c.alive(id + 6)
		c.call(id+8, echoPath, "wait")
		c.call(id+10, echoPath, "wait")
		c.Conn.Close() // which leaves nothing
		close(w.goOn)
		synctest.Wait()
		if len(w.panics) != 1 {
			t.Errorf("%v is told", w.panics)
		}
	})
	for _, waits := range []bool{false, true} {
		play(t, Options{Waits: waits}, func(w *world) {
			c := w.hello()
			c.call(1, echoPath, "panic")
			c.want("HEADERS 1 end 200 grpc-status=13 grpc-message=internal error")
			if len(w.panics) != 1 || w.panics[0] != "inside" {
				t.Errorf("%v is told", w.panics)
			}
			for id := uint32(3); id < 3+2*MaxCalls; id += 2 { // that are only begun
				c.headers(id, false, echoPath)
			}
			refused := func(id uint32) {
				t.Helper()
				c.headers(id, true, echoPath)
				c.want(fmt.Sprintf("RST_STREAM %d REFUSED_STREAM", id))
			}
			refused(1001)
			_ = c.WriteData(3, true, celldtest.GRPCMessage("x"))
			c.want(echoed(3, "x")...)
			c.headers(1003, false, echoPath)
			refused(1005)
			_ = c.WriteRSTStream(5, http2.ErrCodeCancel)
			c.headers(1007, false, echoPath)
			refused(1009)
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 7, EndHeaders: true})
			c.want("RST_STREAM 7 PROTOCOL_ERROR")
			c.headers(1011, false, echoPath)
			refused(1013)
		})
	}
}

// A stream sends until its client has gone, or does not take what it sends.
func TestStreams(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello()
		ended := func(want int) {
			t.Helper()
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.ended != want {
				t.Errorf("%d streams have ended, want %d", w.ended, want)
			}
		}
		c.call(1, repeatPath, "tick")
		tick := fmt.Sprintf("DATA 1 %s", celldtest.GRPCMessage("tick"))
		c.want("HEADERS 1 200", tick)
		c.alive(3)
		celldtest.Pass(2 * time.Second)
		c.want(tick, tick)
		_ = c.WriteRSTStream(1, http2.ErrCodeCancel)
		ended(1)
		celldtest.Pass(2 * time.Second)
		c.want()
		c.call(5, repeatPath, "panic")
		c.want("HEADERS 5 end 200 grpc-status=13 grpc-message=internal error")
		ended(2)
		c.call(7, repeatPath, "deaf")
		c.want("HEADERS 7 200", "DATA 7 "+string(celldtest.GRPCMessage("deaf")))
		_ = c.WriteRSTStream(7, http2.ErrCodeCancel)
		c.call(9, repeatPath, "x")
		c.call(11, repeatPath, "deaf")
		ended(2)
		c.got()
		celldtest.Pass(time.Second)
		ended(3)
		_ = c.Conn.Close()
		ended(4)
		celldtest.Pass(time.Second)
		ended(5)
	})
	play(t, Options{}, func(w *world) {
		c := w.hello(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 7})
		c.call(1, repeatPath, "tick")
		c.want("HEADERS 1 200", "DATA 1 \x00\x00\x00\x00\x04ti")
		celldtest.Pass(5 * time.Second)
		c.want()
		_ = c.WriteWindowUpdate(1, 100)
		c.want("DATA 1 ck", "HEADERS 1 end grpc-status=8 grpc-message=the client does not take the answers")
	})
}

// FuzzConnection: whatever comes after the preface, nothing panics, and the connection ends.
func FuzzConnection(f *testing.F) {
	var b bytes.Buffer
	c := &client{Framer: http2.NewFramer(&b, nil)}
	c.hpack = hpack.NewEncoder(&c.block)
	_ = c.WriteSettings()
	c.call(1, echoPath, "hello")
	c.call(3, repeatPath, "x")
	_ = c.WriteWindowUpdate(0, 9)
	_ = c.WriteRSTStream(3, 0)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, waits := range []bool{false, true} {
			play(t, Options{Waits: waits}, func(w *world) {
				close(w.goOn)
				c := w.dial()
				_, _ = io.WriteString(c.Conn, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				_, _ = c.Conn.Write(data)
				synctest.Wait()
				c.Conn.Close()
				synctest.Wait()
				for _, cause := range w.panics {
					if cause != "inside" {
						t.Errorf("panic: %v", cause)
					}
				}
				w.Server.mu.Lock()
				defer w.Server.mu.Unlock()
				if n := len(w.conns); n > 0 {
					t.Errorf("%d connections are open", n)
				}
			})
		}
	})
}
