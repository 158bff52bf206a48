package grpc

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"celld/internal/celldtest"
)

// TestCalls: what is a call is answered, and what is none gets an error, and the next call is answered.
func TestCalls(t *testing.T) {
	const large = MaxMessage + 1
	const code12 = "HEADERS 1 end 200 grpc-accept-encoding=identity grpc-status=12 grpc-message="
	for name, of := range map[string]struct {
		send func(*client)
		want []string
	}{
		"a message":    {func(c *client) { c.call(1, echoPath, "hello") }, echoed(1, "hello")},
		"none":         {func(c *client) { c.call(1, echoPath, "") }, echoed(1, "")},
		"any encoding": {func(c *client) { c.headers(1, false, echoPath, "content-type", "application/grpc+proto") }, nil},
		"parts": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteDataPadded(1, false, []byte("\x00\x00\x00"), []byte("\x00\x00"))
			_ = c.WriteData(1, false, []byte("\x00\x02h"))
			_ = c.WriteData(1, false, nil)
			_ = c.WriteData(1, true, []byte("i"))
		}, append([]string{"WINDOW_UPDATE 1 6", "WINDOW_UPDATE 1 3"}, echoed(1, "hi")...)},
		"much": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteData(1, false, celldtest.GRPCMessage(strings.Repeat("x", 20_000))[:10_000])
			_ = c.WriteData(1, true, []byte(strings.Repeat("x", 10_005)))
		}, []string{"WINDOW_UPDATE 1 10000", "WINDOW_UPDATE 0 20005", "HEADERS 1 200",
			"DATA 1 " + string(celldtest.GRPCMessage(strings.Repeat("x", 20_000))[:frameSize]),
			"DATA 1 " + strings.Repeat("x", 20_005-frameSize), "HEADERS 1 end grpc-status=0"}},
		"trailers": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteData(1, false, celldtest.GRPCMessage("hi"))
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true})
		}, append([]string{"WINDOW_UPDATE 1 7"}, echoed(1, "hi")...)},
		"an error": {func(c *client) { c.call(1, echoPath, "fail 100% ümlaut\n") },
			[]string{"HEADERS 1 end 200 grpc-status=5 grpc-message=100%25 %C3%BCmlaut%0A"}},
		"a long error": {func(c *client) { c.call(1, echoPath, "fail "+strings.Repeat("x", 9999)) },
			[]string{"HEADERS 1 end 200 grpc-status=5 grpc-message=" + strings.Repeat("x", 2049) + "..."}},
		"another error": {func(c *client) { c.call(1, echoPath, "wrong") },
			[]string{"HEADERS 1 end 200 grpc-status=2 grpc-message=io: read/write on closed pipe"}},
		"an error of a stream": {func(c *client) { c.call(1, repeatPath, "fail so") },
			[]string{"HEADERS 1 end 200 grpc-status=5 grpc-message=so"}},
		"no answer of a stream": {func(c *client) { c.call(1, repeatPath, "nothing") },
			[]string{"HEADERS 1 200", "HEADERS 1 end grpc-status=0"}},
		"unknown service": {func(c *client) { c.call(1, "/t.U/Echo", "") },
			[]string{code12 + "unknown service t.U", "RST_STREAM 1 NO_ERROR"}},
		"no service": {func(c *client) { c.headers(1, true, "Echo") },
			[]string{code12 + "unknown service "}},
		"unknown method": {func(c *client) { c.headers(1, true, "/t.T/Other") },
			[]string{code12 + "unknown method Other of service t.T"}},
		"a page": {func(c *client) { c.headers(1, true, "/", ":method", "GET") },
			[]string{`HEADERS 1 end :status=405 content-type=application/grpc grpc-status=13 ` +
				`grpc-message=a call of gRPC is a POST, not "GET"`}},
		"another content": {func(c *client) { c.headers(1, true, echoPath, "content-type", "application/grpc-web") },
			[]string{`HEADERS 1 end :status=415 content-type=application/grpc grpc-status=3 ` +
				`grpc-message=a call of gRPC has the content-type application/grpc, not "application/grpc-web"`}},
		"an encoding": {func(c *client) { c.headers(1, true, echoPath, "grpc-encoding", "gzip") },
			[]string{code12 + `compression by "gzip" is not supported`}},
		"compressed": {func(c *client) {
			c.headers(1, false, echoPath, "grpc-encoding", "identity")
			_ = c.WriteData(1, true, []byte("\x01\x00\x00\x00\x00"))
		}, []string{code12 + "the message is compressed, which is not supported"}},
		"too large": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteData(1, false, []byte{0, large >> 24, large >> 16 & 255, large >> 8 & 255, large & 255})
		}, []string{"WINDOW_UPDATE 1 5", "HEADERS 1 end 200 grpc-status=8 grpc-message=the message has 65537 bytes, and may have 65536",
			"RST_STREAM 1 NO_ERROR"}},
		"two messages": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteData(1, true, append(celldtest.GRPCMessage("a"), celldtest.GRPCMessage("b")...))
		}, []string{code12 + "a call has one message"}},
		"cut off": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteData(1, true, []byte("\x00\x00\x00\x00\x02h"))
		}, []string{"HEADERS 1 end 200 grpc-status=13 grpc-message=the message is cut off"}},
		"nothing": {func(c *client) { c.headers(1, true, echoPath) },
			[]string{"HEADERS 1 end 200 grpc-status=13 grpc-message=the message is cut off"}},
		"a long header": {func(c *client) {
			c.headers(1, false, echoPath, "x", strings.Repeat("x", 60_000))
			_ = c.WriteData(1, true, celldtest.GRPCMessage("hi"))
		}, echoed(1, "hi")},
		"long headers": {func(c *client) {
			c.encode(echoPath)
			for range maxHeaders/4000 + 1 {
				_ = c.hpack.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 4000)}) // in one byte each, after the first
			}
			c.begin(1, true)
		},
			[]string{"HEADERS 1 end :status=431 content-type=application/grpc grpc-status=8 " +
				"grpc-message=the headers have more than 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				c := w.hello()
				of.send(c)
				c.want(of.want...)
				c.alive(3)
			})
		})
	}
}
