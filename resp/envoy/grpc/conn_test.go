package grpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"celld/internal/celldtest"
)

// Calls that come together are answered together.
func TestOneWrite(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello()
		before := c.reads
		var all strings.Builder
		writes := http2.NewFramer(&all, nil)
		c.Framer, writes = writes, c.Framer
		var want []string
		for id := uint32(1); id < 20; id += 2 {
			c.call(id, echoPath, "x")
			want = append(want, echoed(id, "x")...)
		}
		c.Framer = writes
		_, _ = io.WriteString(c.Conn, all.String())
		c.want(want...)
		if size := len(all.String()); size > readSize || c.reads-before > 3*10*2+1 {
			t.Errorf("%d bytes are answered in %d reads", size, c.reads-before)
		}
	})
}

// A client that asks for no table of headers gets blocks that say so.
func TestTableSize(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello()
		c.ReadMetaHeaders = nil
		const status200, newSize0, literal = "88", "20", "10"
		message := string(celldtest.GRPCMessage("x"))
		c.call(1, echoPath, "x")
		c.want("HEADERS 1 "+status200+"1f", "DATA 1 "+message, "HEADERS 1 end "+literal+"88")
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		c.want("SETTINGS ack")
		c.call(3, echoPath, "x")
		c.want("HEADERS 3 "+newSize0+status200, "DATA 3 "+message, "HEADERS 3 end "+literal+"88")
	})
}

// TestProtocolErrors: what breaks HTTP/2 ends a call or the connection, with the error that RFC 9113 has for it.
func TestProtocolErrors(t *testing.T) {
	const reset = "RST_STREAM 1 "
	ends := func(last, code string) []string { return []string{"GOAWAY " + last + " " + code} }
	for name, of := range map[string]struct {
		send func(*client)
		want []string
	}{
		"frame too large":       {func(c *client) { _ = c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, frameSize+1)) }, ends("0", "FRAME_SIZE_ERROR")},
		"data before headers":   {func(c *client) { _ = c.WriteData(1, true, nil) }, ends("0", "PROTOCOL_ERROR")},
		"window before headers": {func(c *client) { _ = c.WriteWindowUpdate(1, 1) }, ends("0", "PROTOCOL_ERROR")},
		"reset before headers":  {func(c *client) { _ = c.WriteRSTStream(1, 0) }, ends("0", "PROTOCOL_ERROR")},
		"an even number":        {func(c *client) { c.headers(2, true, echoPath) }, ends("0", "PROTOCOL_ERROR")},
		"a smaller number":      {func(c *client) { c.alive(3); c.headers(1, true, echoPath) }, ends("3", "STREAM_CLOSED")},
		"a used number":         {func(c *client) { c.alive(1); c.headers(1, true, echoPath) }, ends("1", "STREAM_CLOSED")},
		"push": {func(c *client) {
			_ = c.WriteRawFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, make([]byte, 4))
		}, ends("0", "PROTOCOL_ERROR")},
		"continuation alone": {func(c *client) { _ = c.WriteContinuation(1, true, nil) }, ends("0", "PROTOCOL_ERROR")},
		"bad settings":       {func(c *client) { _ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }, ends("0", "FLOW_CONTROL_ERROR")},
		"bad headers": {func(c *client) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff}, EndHeaders: true})
		}, ends("0", "COMPRESSION_ERROR")},
		"window of the connection": {func(c *client) { _ = c.WriteWindowUpdate(0, mostWindow) }, ends("0", "FLOW_CONTROL_ERROR")},
		"window by settings": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteWindowUpdate(1, mostWindow-usualWindow)
			_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: usualWindow + 1})
		}, ends("1", "FLOW_CONTROL_ERROR")},

		"no path":         {func(c *client) { c.headers(1, true, "") }, []string{reset + "PROTOCOL_ERROR"}},
		"no scheme":       {func(c *client) { c.headers(1, true, echoPath, ":scheme", "") }, []string{reset + "PROTOCOL_ERROR"}},
		"no method":       {func(c *client) { c.headers(1, true, echoPath, ":method", "") }, []string{reset + "PROTOCOL_ERROR"}},
		"a connection":    {func(c *client) { c.headers(1, true, echoPath, "connection", "close") }, []string{reset + "PROTOCOL_ERROR"}},
		"te":              {func(c *client) { c.headers(1, true, echoPath, "te", "gzip") }, []string{reset + "PROTOCOL_ERROR"}},
		"large letters":   {func(c *client) { c.headers(1, true, echoPath, "X", "y") }, []string{reset + "PROTOCOL_ERROR"}},
		"a pseudo header": {func(c *client) { c.headers(1, true, echoPath, ":x", "y") }, []string{reset + "PROTOCOL_ERROR"}},
		"own priority":    {func(c *client) { _ = c.WritePriority(1, http2.PriorityParam{StreamDep: 1}) }, []string{reset + "PROTOCOL_ERROR"}},
		"own priority of headers": {func(c *client) {
			c.headers(1, true, echoPath)
			c.want("HEADERS 1 end 200 grpc-status=13 grpc-message=the message is cut off")
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: c.block.Bytes(), EndHeaders: true,
				Priority: http2.PriorityParam{StreamDep: 3}})
		}, []string{"RST_STREAM 3 PROTOCOL_ERROR"}},
		"a priority": {func(c *client) {
			c.headers(1, true, echoPath)
			c.want("HEADERS 1 end 200 grpc-status=13 grpc-message=the message is cut off")
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: true,
				Priority: http2.PriorityParam{StreamDep: 1}})
		}, []string{"HEADERS 3 end 200 grpc-status=13 grpc-message=the message is cut off"}},
		"data of an even number": {func(c *client) { c.alive(5); _ = c.WriteData(4, true, nil) }, ends("5", "PROTOCOL_ERROR")},
		"a smaller number than that of a bad call": {func(c *client) {
			c.headers(5, true, echoPath, ":x", "y")
			c.want("RST_STREAM 5 PROTOCOL_ERROR")
			c.headers(3, true, echoPath)
		}, ends("5", "STREAM_CLOSED")},
		"content-length above": {func(c *client) {
			c.headers(1, false, echoPath, "content-length", "7")
			_ = c.WriteData(1, true, celldtest.GRPCMessage("x"))
		}, []string{reset + "PROTOCOL_ERROR"}},
		"content-length below": {func(c *client) {
			c.headers(1, false, echoPath, "content-length", "5")
			_ = c.WriteData(1, false, celldtest.GRPCMessage("x"))
		}, []string{"WINDOW_UPDATE 1 6", reset + "PROTOCOL_ERROR"}},
		"content-length without data": {func(c *client) { c.headers(1, true, echoPath, "content-length", "6") }, []string{reset + "PROTOCOL_ERROR"}},
		"content-length and trailers": {func(c *client) {
			c.headers(1, false, echoPath, "content-length", "7")
			_ = c.WriteData(1, false, celldtest.GRPCMessage("x")[:6])
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true})
		}, []string{"WINDOW_UPDATE 1 6", reset + "PROTOCOL_ERROR"}},
		"content-length of no number": {func(c *client) { c.headers(1, false, echoPath, "content-length", "+6") }, []string{reset + "PROTOCOL_ERROR"}},
		"content-length that fits": {func(c *client) {
			c.headers(1, false, echoPath, "content-length", "6")
			_ = c.WriteData(1, true, celldtest.GRPCMessage("x"))
		}, echoed(1, "x")},
		"a rest after a reset": {func(c *client) { // its client did not know yet
			c.headers(1, false, echoPath, ":x", "y")
			_ = c.WriteData(1, false, []byte("x"))
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true})
		}, []string{reset + "PROTOCOL_ERROR"}},
		"a rest after a rejection": {func(c *client) {
			c.headers(1, false, "/t.T/None")
			_ = c.WriteData(1, false, []byte("x"))
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true})
		}, []string{"HEADERS 1 end 200 grpc-accept-encoding=identity grpc-status=12 grpc-message=unknown method None of service t.T",
			reset + "NO_ERROR"}},
		"a rest after two resets": {func(c *client) { // it did know
			c.headers(1, false, echoPath, ":x", "y")
			_ = c.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = c.WriteData(1, false, []byte("x"))
		}, []string{reset + "PROTOCOL_ERROR", reset + "STREAM_CLOSED"}},
		"wrong trailers after a reset": {func(c *client) {
			c.headers(1, false, echoPath, ":x", "y")
			c.headers(1, true, echoPath)
		}, []string{reset + "PROTOCOL_ERROR", reset + "PROTOCOL_ERROR"}},
		"a rest after many rejections": {func(c *client) {
			for id := uint32(1); id < 4*MaxCalls; id += 2 {
				c.headers(id, false, "/t.T/None")
			}
			c.got()
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 4*MaxCalls - 1, EndHeaders: true, EndStream: true})
			c.want()
			if n := len(c.conn().forsaken); n != MaxCalls {
				c.Errorf("%d ended calls are remembered", n)
			}
			c.headers(1, true, echoPath)
		}, ends("1023", "STREAM_CLOSED")},
		"headers twice": {func(c *client) { c.headers(1, false, echoPath); c.headers(1, true, echoPath) }, []string{reset + "PROTOCOL_ERROR"}},
		"trailers without an end": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true})
		}, []string{reset + "PROTOCOL_ERROR"}},
		"data after the answer": {func(c *client) { c.alive(1); _ = c.WriteData(1, true, nil) }, []string{reset + "STREAM_CLOSED"}},
		"data after the end":    {func(c *client) { c.call(1, repeatPath, ""); c.got(); _ = c.WriteData(1, true, nil) }, []string{reset + "STREAM_CLOSED"}},
		"headers after the end": {func(c *client) { c.call(1, repeatPath, ""); c.got(); c.headers(1, true, echoPath) }, []string{reset + "STREAM_CLOSED"}},
		"window of a call":      {func(c *client) { c.headers(1, false, echoPath); _ = c.WriteWindowUpdate(1, mostWindow) }, []string{reset + "FLOW_CONTROL_ERROR"}},
		"no window": {func(c *client) {
			c.headers(1, false, echoPath)
			_ = c.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4))
		}, []string{reset + "PROTOCOL_ERROR"}},

		"frames that nobody knows": {func(c *client) {
			_ = c.WriteRawFrame(99, 0, 0, []byte("x"))
			_ = c.WritePriority(1, http2.PriorityParam{StreamDep: 7})
			_ = c.WriteGoAway(0, 0, nil)
			_ = c.WritePing(false, [8]byte{'p'})
			_ = c.WritePing(true, lastPing)
			_ = c.WriteSettingsAck()
		}, []string{"PING ack p\x00\x00\x00\x00\x00\x00\x00"}},
		"late frames": {func(c *client) {
			c.alive(1)
			_ = c.WriteWindowUpdate(1, 1)
			_ = c.WriteRSTStream(1, 0)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				c := w.hello()
				of.send(c)
				c.want(of.want...)
				if len(of.want) == 1 && strings.HasPrefix(of.want[0], "GOAWAY") {
					celldtest.Pass(partingTime)
					c.want("closed")
					return
				}
				c.alive(101)
			})
		})
	}
}

// What does not begin with the preface and settings, in time, is no connection. A client of HTTP/1.1 is told so at once.
func TestHandshake(t *testing.T) {
	const settings = "SETTINGS MAX_CONCURRENT_STREAMS=256 MAX_HEADER_LIST_SIZE=65536"
	wrong := []string{settings, "GOAWAY 0 PROTOCOL_ERROR", "closed"}
	for name, of := range map[string]struct {
		send string
		want []string
	}{
		"nothing":                         {"", []string{"closed"}},
		"half a preface":                  {http2.ClientPreface[:9], []string{"closed"}},
		"no settings":                     {http2.ClientPreface, wrong},
		"ping first":                      {http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x00pingpong", wrong},
		"a bad call first":                {http2.ClientPreface + "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x80", wrong},
		"a bad window first":              {http2.ClientPreface + "\x00\x00\x04\x08\x00\x00\x00\x00\x01\x00\x00\x00\x00", wrong},
		"settings are acknowledged first": {http2.ClientPreface + "\x00\x00\x00\x04\x01\x00\x00\x00\x00", wrong},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{}, func(w *world) {
				c := w.dial()
				go io.WriteString(c.Conn, of.send)
				celldtest.Pass(handshakeTime + partingTime)
				c.want(of.want...)
			})
		})
	}
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n$4\r\nPING\r\n", "x"} {
		play(t, Options{}, func(w *world) {
			conn, err := w.pipes.Dial(w.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(conn, request)
			began := time.Now()
			answer, err := io.ReadAll(conn)
			if err != nil || string(answer) != answerToOthers || time.Since(began) > partingTime {
				t.Errorf("%q: after %v got %q, %v", request, time.Since(began), answer, err)
			}
			conn.Close()
		})
	}
}

// By TLS a client must speak HTTP/2.
func TestTLS(t *testing.T) {
	authority := celldtest.NewAuthority(t)
	cert, err := tls.LoadX509KeyPair(authority.Sign("server", &x509.Certificate{DNSNames: []string{"server"}}))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, authority.File)))
	server := func(c net.Conn) *tls.Conn {
		return tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	}
	for protocol, is := range map[string]bool{"h2": true, "": false} {
		pipes := celldtest.NewPipes()
		s := NewServer(Options{TLS: server, Panicked: func(cause any) { t.Error(cause) }})
		go s.Serve(pipes)
		raw, err := pipes.Dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: trusted, ServerName: "server"}
		if protocol != "" {
			config.NextProtos = []string{protocol}
		}
		client := tls.Client(raw, config)
		framer := http2.NewFramer(client, client)
		if _, err := io.WriteString(client, http2.ClientPreface); err == nil {
			go framer.WriteSettings()
		}
		f, err := framer.ReadFrame()
		if _, got := f.(*http2.SettingsFrame); got != is {
			t.Errorf("%q: got %v, %v", protocol, f, err)
		}
		s.Shutdown(celldtest.Ended())
		raw.Close()
	}
}

// A panic ends its connection, and nothing else.
func TestPanic(t *testing.T) {
	fails := true
	shakeHands := func(c net.Conn) *tls.Conn {
		if fails {
			panic("inside")
		}
		return tls.Server(c, &tls.Config{})
	}
	play(t, Options{TLS: shakeHands}, func(w *world) {
		w.dial().want("closed")
		fails = false
		w.dial().want()
		if len(w.panics) != 1 || w.panics[0] != "inside" {
			t.Errorf("%v is told", w.panics)
		}
	})
}

// A client that is silent is asked whether it is there, and closed if not.
func TestKeepAlive(t *testing.T) {
	play(t, Options{}, func(w *world) {
		c := w.hello()
		celldtest.Pass(silence) // after the settings: they were heard
		c.want()
		for range 3 {
			celldtest.Pass(silence)
			c.want("PING")
			_ = c.WritePing(true, [8]byte{})
			celldtest.Pass(pingTime)
			c.want()
		}
		celldtest.Pass(silence)
		c.want("PING")
		celldtest.Pass(pingTime - 1)
		c.want()
		celldtest.Pass(1)
		c.want("closed")
	})
}

// A client that takes nothing is closed.
func TestStuck(t *testing.T) {
	for _, waits := range []bool{false, true} {
		play(t, Options{Waits: waits}, func(w *world) {
			c, pause := w.hello(), make(chan struct{})
			c.mu.Lock()
			c.pause = pause
			c.mu.Unlock()
			_ = c.WritePing(false, [8]byte{}) // what reads has begun before
			c.call(1, echoPath, "x")
			celldtest.Pass(pingTime)
			if _, err := c.Conn.Write([]byte("x")); err == nil {
				t.Error("the connection is open")
			}
			close(pause)
		})
	}
}

// An old connection is closed when its calls are answered, and takes those that its client has made before it knew.
func TestMaxAge(t *testing.T) {
	play(t, Options{MaxAge: time.Second, MaxAgeGrace: time.Minute, Waits: true}, func(w *world) {
		c := w.hello()
		celldtest.Pass(899 * time.Millisecond)
		c.want()
		c.call(1, echoPath, "wait")
		celldtest.Pass(202 * time.Millisecond)
		c.want("GOAWAY 2147483647 NO_ERROR", "PING last")
		c.alive(3)
		_ = c.WritePing(true, lastPing)
		c.want("GOAWAY 3 NO_ERROR")
		c.call(5, echoPath, "late")
		c.want("RST_STREAM 5 REFUSED_STREAM")
		w.goOn <- struct{}{}
		c.want(echoed(1, "wait")...)
		celldtest.Pass(partingTime - 1)
		c.want()
		celldtest.Pass(1)
		c.want("closed")
	})
	play(t, Options{MaxAge: time.Second, MaxAgeGrace: time.Minute}, func(w *world) {
		c := w.hello()
		celldtest.Pass(1100*time.Millisecond + time.Minute)
		c.want("GOAWAY 2147483647 NO_ERROR", "PING last", "closed")
	})
	ages := map[bool]int{}
	s := NewServer(Options{MaxAge: 100 * time.Second})
	for range 1000 {
		age := s.age()
		if age < 90*time.Second || age > 110*time.Second {
			t.Fatalf("an age of %v", age)
		}
		ages[age < 100*time.Second]++
	}
	if len(ages) != 2 {
		t.Error("all connections become as old")
	}
}

// A stop waits for calls that run, and not for streams, and then for nothing when its time is up.
func TestShutdown(t *testing.T) {
	play(t, Options{Waits: true}, func(w *world) {
		c, idle := w.hello(), w.hello()
		silent, late := w.dial(), w.dial()
		c.call(1, echoPath, "wait")
		c.call(3, repeatPath, "x")
		c.want(echoed(3, "x")[:2]...)
		ended := w.shutdown(time.Minute)
		_, _ = io.WriteString(late.Conn, http2.ClientPreface)
		_ = late.WriteSettings()
		late.call(1, echoPath, "in time")
		late.want(append([]string{"SETTINGS MAX_CONCURRENT_STREAMS=256 MAX_HEADER_LIST_SIZE=65536", "SETTINGS ack",
			"GOAWAY 2147483647 NO_ERROR", "PING last"}, echoed(1, "in time")...)...)
		late.Conn.Close()
		c.want("GOAWAY 2147483647 NO_ERROR", "PING last", "HEADERS 3 end grpc-status=14 grpc-message=no more")
		_ = c.WritePing(true, lastPing)
		c.want("GOAWAY 3 NO_ERROR")
		_ = idle.WritePing(true, lastPing)
		idle.want("GOAWAY 2147483647 NO_ERROR", "PING last", "GOAWAY 0 NO_ERROR")
		celldtest.Pass(partingTime)
		idle.want("closed")
		silent.want("closed")
		if _, err := w.pipes.Dial(w.Context(), ""); err == nil {
			t.Error("there are new connections")
		}
		celldtest.Pass(time.Minute - partingTime - 1)
		select {
		case <-ended:
			t.Error("a call that runs does not hold up the end")
		default:
		}
		celldtest.Pass(1)
		c.want("closed")
		<-ended
		close(w.goOn)
	})
	play(t, Options{Waits: true}, func(w *world) {
		c := w.hello()
		c.call(1, echoPath, "wait")
		ended := w.shutdown(time.Minute)
		c.want("GOAWAY 2147483647 NO_ERROR", "PING last")
		_ = c.WritePing(true, lastPing)
		close(w.goOn)
		c.want(append([]string{"GOAWAY 1 NO_ERROR"}, echoed(1, "wait")...)...)
		c.Conn.Close()
		<-ended
	})
	play(t, Options{}, func(w *world) { // a stream that begins before the client knows ends, too
		c := w.hello()
		ended := w.shutdown(time.Minute)
		c.want("GOAWAY 2147483647 NO_ERROR", "PING last")
		c.call(1, repeatPath, "x")
		c.want(append(echoed(1, "x")[:2], "HEADERS 1 end grpc-status=14 grpc-message=no more")...)
		_ = c.WritePing(true, lastPing)
		c.want("GOAWAY 1 NO_ERROR")
		c.Conn.Close()
		<-ended
	})
	s := NewServer(Options{})
	s.Shutdown(celldtest.Ended())
	if err := s.Serve(celldtest.NewPipes()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve after the end: %v", err)
	}
}

// What accepts goes on after errors such as too many open files.
func TestAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &failing{Pipes: celldtest.NewPipes()}
		s, served := NewServer(Options{}), make(chan error)
		go func() { served <- s.Serve(failing) }()
		celldtest.Pass(10 * time.Second)
		// After 5, 10, 20, ... 640 ms, and then each second.
		if times := failing.times.Load(); times < 15 || times > 20 {
			t.Errorf("it tried %d times in 10 s", times)
		}
		s.Shutdown(t.Context())
		celldtest.Pass(time.Second)
		<-served
	})
}

// failing is a listener that fails until it is closed.
type failing struct {
	*celldtest.Pipes
	times atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	f.times.Add(1)
	conn, err := net.Conn(nil), errors.New("too many open files")
	synctest.Wait()
	select {
	case <-f.Pipes.Ended():
		err = net.ErrClosed
	default:
	}
	return conn, err
}
