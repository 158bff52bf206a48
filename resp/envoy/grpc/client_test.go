package grpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"celld/internal/celldtest"
)

// world is a server in fake time. Its methods are
//
//	/t.T/Echo    answers with the message. "fail text" fails with NOT_FOUND, "wrong" with another error, "panic" panics, "wait…" waits
//	/t.T/Repeat  answers with the message each second. "fail text" and "panic" do as above, "nothing" ends, "deaf" hears no end
type world struct {
	*testing.T
	*Server
	pipes  *celldtest.Pipes
	goOn   chan struct{}
	mu     sync.Mutex
	panics []any
	ended  int // calls of Repeat
}

// play plays in fake time.
func play(t *testing.T, o Options, then func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, pipes: celldtest.NewPipes(), goOn: make(chan struct{})}
		o.Methods = map[string]Method{"/t.T/Echo": {Unary: w.echo}, "/t.T/Repeat": {Stream: w.repeat}}
		o.Panicked = func(cause any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.panics = append(w.panics, cause)
		}
		w.Server = NewServer(o)
		served := make(chan error)
		go func() { served <- w.Serve(w.pipes) }()
		defer func() {
			w.Shutdown(celldtest.Ended())
			if err := <-served; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returns %v", err)
			}
		}()
		then(w)
	})
}

func (w *world) echo(in, out []byte) ([]byte, error) {
	switch text := string(in); {
	case strings.HasPrefix(text, "wait"):
		<-w.goOn
	case text == "panic":
		panic("inside")
	case text == "wrong":
		return nil, io.ErrClosedPipe
	case strings.HasPrefix(text, "fail "):
		return append(out, "left out"...), Errorf(NotFound, "%s", in[5:])
	}
	return append(out, in...), nil
}

func (w *world) repeat(in []byte, to *Sender) error {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended++
	}()
	done := to.Done()
	switch text := string(in); {
	case text == "panic":
		panic("inside")
	case text == "deaf":
		done = nil
	case text == "nothing":
		return nil
	case strings.HasPrefix(text, "fail "):
		return Errorf(NotFound, "%s", in[5:])
	}
	for {
		if err := to.Send(in); err != nil {
			return err
		}
		select {
		case <-done:
			return Errorf(Unavailable, "no more")
		case <-time.After(time.Second):
		}
	}
}

// conn is the server's side of the only connection.
func (w *world) conn() *conn {
	w.Helper()
	synctest.Wait()
	w.Server.mu.Lock()
	defer w.Server.mu.Unlock()
	for c := range w.conns {
		return c
	}
	w.Fatal("there is no connection")
	return nil
}

// client is a connection whose frames are written one by one. What comes is read at once.
type client struct {
	*world
	net.Conn
	*http2.Framer
	hpack  *hpack.Encoder
	block  bytes.Buffer
	mu     sync.Mutex
	came   []string
	pause  chan struct{} // holds what reads; nil: it reads
	reads  int
	closed bool
}

// dial connects, and says nothing.
func (w *world) dial() *client {
	w.Helper()
	conn, err := w.pipes.Dial(w.Context(), "")
	if err != nil {
		w.Fatal(err)
	}
	c := &client{world: w, Conn: conn}
	c.Framer = http2.NewFramer(conn, (*reading)(c))
	c.Framer.AllowIllegalWrites = true
	c.Framer.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	c.hpack = hpack.NewEncoder(&c.block)
	go c.read()
	w.Cleanup(func() { conn.Close() })
	return c
}

// hello is dial with the preface and settings, and the server's answer to them.
func (w *world) hello(settings ...http2.Setting) *client {
	w.Helper()
	c := w.dial()
	_, _ = io.WriteString(c.Conn, http2.ClientPreface)
	_ = c.WriteSettings(settings...)
	c.want("SETTINGS MAX_CONCURRENT_STREAMS=256 MAX_HEADER_LIST_SIZE=65536", "SETTINGS ack")
	return c
}

// reading counts how often something is read, and waits where it is held.
type reading client

func (r *reading) Read(into []byte) (int, error) {
	r.mu.Lock()
	pause := r.pause
	r.mu.Unlock()
	if pause != nil {
		<-pause
	}
	n, err := r.Conn.Read(into)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return n, err
}

// read notes what comes, until the connection ends.
func (c *client) read() {
	for {
		f, err := c.ReadFrame()
		text := "closed"
		if err == nil {
			text = textOf(f)
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			text = err.Error()
		}
		c.mu.Lock()
		c.came = append(c.came, text)
		c.closed = err != nil
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// textOf shows a frame, such as "DATA 1 text" or "HEADERS 1 end grpc-status=0".
func textOf(f http2.Frame) string {
	h, end := f.Header(), ""
	if (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) && h.Flags.Has(http2.FlagDataEndStream) {
		end = " end"
	}
	head := fmt.Sprintf("%v %d%s", h.Type, h.StreamID, end)
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return fmt.Sprintf("%s %x", head, f.HeaderBlockFragment()[:2])
	case *http2.MetaHeadersFrame:
		for _, field := range f.Fields {
			head += " " + field.Name + "=" + field.Value
		}
		return strings.Replace(head, ":status=200 content-type=application/grpc", "200", 1)
	case *http2.DataFrame:
		return head + " " + string(f.Data())
	case *http2.SettingsFrame:
		head = "SETTINGS"
		if f.IsAck() {
			return head + " ack"
		}
		_ = f.ForeachSetting(func(s http2.Setting) error {
			head += fmt.Sprintf(" %v=%d", s.ID, s.Val)
			return nil
		})
		return head
	case *http2.GoAwayFrame:
		return fmt.Sprintf("GOAWAY %d %v", f.LastStreamID, f.ErrCode)
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("%s %v", head, f.ErrCode)
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("%s %d", head, f.Increment)
	case *http2.PingFrame:
		if f.IsAck() {
			return fmt.Sprintf("PING ack %s", f.Data[:])
		}
		return strings.TrimRight(fmt.Sprintf("PING %s", f.Data[:]), "\x00 ")
	}
	return head
}

// got is all that has come since the last time.
func (c *client) got() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	came := c.came
	c.came = nil
	return came
}

// want compares what has come with these frames.
func (c *client) want(frames ...string) {
	c.T.Helper()
	if got, want := strings.Join(c.got(), "\n"), strings.Join(frames, "\n"); got != want {
		c.T.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const echoPath, repeatPath = "/t.T/Echo", "/t.T/Repeat"

// headers begins a call. Fields are more headers, or take the place of the usual ones; those that are "" are left out.
func (c *client) headers(id uint32, end bool, path string, fields ...string) {
	c.encode(path, fields...)
	c.begin(id, end)
}

// encode encodes headers.
func (c *client) encode(path string, fields ...string) {
	all := []string{":method", "POST", ":scheme", "http", ":path", path, "te", "trailers", "content-type", "application/grpc"}
	for i := 0; i < len(fields); i += 2 {
		at := 0
		for at < len(all) && all[at] != fields[i] {
			at += 2
		}
		if at == len(all) {
			all = append(all, fields[i], "")
		}
		all[at+1] = fields[i+1]
	}
	c.block.Reset()
	for i := 0; i < len(all); i += 2 {
		if all[i+1] != "" {
			_ = c.hpack.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
		}
	}
}

// begin begins a call with what is encoded.
func (c *client) begin(id uint32, end bool) {
	rest := c.block.Bytes()
	block := rest[:min(len(rest), frameSize)]
	rest = rest[len(block):]
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: len(rest) == 0, EndStream: end})
	for len(rest) > 0 {
		block = rest[:min(len(rest), frameSize)]
		rest = rest[len(block):]
		_ = c.WriteContinuation(id, len(rest) == 0, block)
	}
}

// call calls Echo or Repeat.
func (c *client) call(id uint32, path, message string) {
	c.headers(id, false, path)
	_ = c.WriteData(id, true, celldtest.GRPCMessage(message))
}

// echoed are the frames of an answer.
func echoed(id uint32, message string) []string {
	return []string{
		fmt.Sprintf("HEADERS %d 200", id), fmt.Sprintf("DATA %d %s", id, celldtest.GRPCMessage(message)),
		fmt.Sprintf("HEADERS %d end grpc-status=0", id),
	}
}

// alive is whether the connection answers a call.
func (c *client) alive(id uint32) {
	c.T.Helper()
	c.call(id, echoPath, "alive")
	c.want(echoed(id, "alive")...)
}

// shutdown is Shutdown with a time. It returns a channel that tells when it has ended.
func (w *world) shutdown(d time.Duration) chan struct{} {
	ended := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(w.Context(), d)
		defer cancel()
		w.Shutdown(ctx)
		close(ended)
	}()
	synctest.Wait()
	return ended
}
