package grpc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// conn is a connection. Its goroutine holds mu, except while it waits for bytes: all that follows mu is used only by who holds it.
type conn struct {
	*Server
	raw   net.Conn
	heard atomic.Bool // bytes have come since the last keepAlive
	alive *time.Timer // of the next keepAlive
	asked bool        // the last keepAlive has sent a ping

	mu      sync.Mutex
	secure  net.Conn // raw, or TLS on it; nil: hands are not shaken yet
	framer  *http2.Framer
	written []byte // frames that are to be sent
	scratch []byte // room for an answer
	calls   map[uint32]*call
	last    uint32  // the id of the last call
	queue   []*call // calls that are to run
	running int     // goroutines that run calls, also those that the client does not want any more
	taken   uint32  // bytes of messages that the client does not know as taken yet

	forsaken []uint32 // ids: see forsake

	// How many bytes of answers the client takes now, in all calls and in a new one, and the calls that wait for it to take more.
	window, firstWindow int64
	waiting             []*call

	tableSet bool // the client has said how large its table of headers is, and expects an answer
	leaving  leaving
	hurried  bool // it is to end as soon as it is greeted
	ageing   *time.Timer
}

// leaving is how far the end of a connection is.
type leaving int

const (
	greeting leaving = iota // the client has not sent its settings yet
	staying
	told     // the client was told to make no more calls, and may not know it yet
	refusing // it knows
	parting  // all calls are answered: the client has partingTime to close the connection
	gone     // it is closed
)

const (
	readSize    = 4 << 10  // bytes that are read at once
	writtenSize = 64 << 10 // when there are more bytes to be sent, they are sent before the next frame is read
	frameSize   = 16 << 10 // bytes of a frame at most, which every client takes
	tableSize   = 4 << 10  // bytes of the table of a client's headers: HTTP/2 begins with so many
	usualWindow = 1<<16 - 1
	mostWindow  = 1<<31 - 1
)

func newConn(s *Server, raw net.Conn) *conn {
	c := &conn{Server: s, raw: raw, calls: map[uint32]*call{}, window: usualWindow, firstWindow: usualWindow}
	c.framer = http2.NewFramer((*output)(c), bufio.NewReaderSize((*input)(c), readSize))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(frameSize)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	c.framer.MaxHeaderListSize = maxHeaders
	return c
}

// output appends frames to what is to be sent.
type output conn

func (o *output) Write(frame []byte) (int, error) {
	o.written = append(o.written, frame...)
	return len(frame), nil
}

// input reads from the client. Before it waits for bytes, it sends what there is, so that calls that came together are answered together.
type input conn

func (i *input) Read(into []byte) (n int, err error) {
	c := (*conn)(i)
	if err := c.flush(); err != nil {
		return 0, err
	}
	c.mu.Unlock()
	n, err = c.secure.Read(into)
	c.mu.Lock()
	c.heard.Store(true)
	return n, err
}

// flush sends what is to be sent. It closes the connection if it cannot, or if the client takes nothing for pingTime.
func (c *conn) flush() error {
	if len(c.written) == 0 {
		return nil
	}
	_ = c.raw.SetWriteDeadline(time.Now().Add(pingTime))
	_, err := c.secure.Write(c.written)
	if err != nil {
		c.raw.Close()
	}
	if c.written = c.written[:0]; cap(c.written) > writtenSize/2 {
		c.written = nil
	}
	return err
}

// serve serves the connection until it ends.
func (c *conn) serve() {
	defer c.raw.Close()
	defer c.survive(new(error))
	_ = c.raw.SetDeadline(time.Now().Add(handshakeTime))
	secure := c.raw
	if c.TLS != nil {
		over := c.TLS(c.raw)
		if over.Handshake() != nil || over.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			return
		}
		secure = over
		defer secure.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.forget()
	c.secure = secure
	err, failed := c.readFrames(), http2.ConnectionError(0)
	switch {
	case errors.As(err, &failed):
		_ = c.framer.WriteGoAway(c.last, http2.ErrCode(failed), nil)
	case errors.Is(err, errNoHTTP2):
		c.written = append(c.written, answerToOthers...)
	default:
		return
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(partingTime))
	_, _ = io.Copy(io.Discard, (*input)(c)) // which sends first
}

// forget ends what the connection has begun.
func (c *conn) forget() {
	c.leaving = gone
	for _, timer := range []*time.Timer{c.alive, c.ageing} {
		if timer != nil {
			timer.Stop()
		}
	}
	for _, call := range c.calls {
		c.remove(call)
	}
}

// errNoHTTP2 is the error of a client that speaks something else.
var errNoHTTP2 = errors.New("this is no HTTP/2")

// answerToOthers tells a client of HTTP/1.1, such as curl, what is here.
const answerToOthers = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis address serves gRPC, by HTTP/2.\n"

// readPreface reads what a client of HTTP/2 begins with.
func (c *conn) readPreface() error {
	var preface [len(http2.ClientPreface)]byte
	for n := 0; n < len(preface); {
		more, err := (*input)(c).Read(preface[n:])
		if err != nil {
			return err
		}
		if n += more; !strings.HasPrefix(http2.ClientPreface, string(preface[:n])) {
			return errNoHTTP2
		}
	}
	return nil
}

// readFrames reads frames until the client has gone. An http2.ConnectionError is what the client is to be told.
func (c *conn) readFrames() error {
	if err := c.readPreface(); err != nil {
		return err
	}
	_ = c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: MaxCalls},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaders})
	for first := true; ; first = false {
		f, err := c.framer.ReadFrame()
		if settings, is := f.(*http2.SettingsFrame); first && (!is || settings.IsAck()) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if err == nil {
			err = c.read(f)
		}
		if err != nil {
			if err = c.resetIf(err); err != nil {
				return err
			}
		}
		if first {
			c.leaving = staying
			_ = c.raw.SetReadDeadline(time.Time{})
			c.startTimers()
			if c.hurried {
				c.tell()
			}
		}
		if len(c.written) > writtenSize {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// resetIf resets a call that an error is about, and else returns the error.
func (c *conn) resetIf(err error) error {
	of := http2.StreamError{}
	switch {
	case errors.As(err, &of):
		c.last = max(c.last, of.StreamID)
		c.reset(of.StreamID, of.Code)
		return nil
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	return err
}

// startTimers starts what the connection does at times.
func (c *conn) startTimers() {
	c.alive = time.AfterFunc(time.Hour, c.keepAlive)
	c.alive.Reset(silence)
	if c.MaxAge > 0 {
		c.ageing = time.AfterFunc(c.age(), c.retire)
	}
}

// retire ends a connection that is too old.
func (c *conn) retire() {
	c.drain()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.MaxAgeGrace > 0 && c.leaving != gone {
		c.ageing = time.AfterFunc(c.MaxAgeGrace, func() { c.raw.Close() })
	}
}

// keepAlive closes the connection if the client has gone, and else looks after its calls.
func (c *conn) keepAlive() {
	switch {
	case c.heard.Swap(false):
		c.asked = false
		c.alive.Reset(silence)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tidy()
		_ = c.flush()
	case !c.asked:
		c.asked = true
		c.alive.Reset(pingTime)
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.framer.WritePing(false, [8]byte{})
		_ = c.flush()
	default:
		c.raw.Close()
	}
}

// tidy ends calls that wait for their client, to send its message or to take the answer, and did when it last looked.
func (c *conn) tidy() {
	for id, call := range c.calls {
		waits := !call.received || len(call.rest) > 0
		if waits && call.late {
			c.reset(id, http2.ErrCodeCancel)
		}
		call.late = waits
	}
}

// lastPing is a ping whose answer says that the client knows it is to make no more calls.
var lastPing = [8]byte{'l', 'a', 's', 't'}

// drain ends the connection when the calls that the client has made are answered. One that has not begun may have calls on their way.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.leaving {
	case greeting:
		c.hurried = true
		_ = c.raw.SetReadDeadline(time.Now().Add(partingTime))
	case staying:
		c.tell()
		_ = c.flush()
	}
}

// tell tells the client to make no more calls.
func (c *conn) tell() {
	c.leaving = told
	for _, call := range c.calls {
		call.cancel()
	}
	_ = c.framer.WriteGoAway(mostWindow, http2.ErrCodeNo, nil)
	_ = c.framer.WritePing(false, lastPing)
}

// refuse is what follows when the client knows.
func (c *conn) refuse() {
	c.leaving = refusing
	_ = c.framer.WriteGoAway(c.last, http2.ErrCodeNo, nil)
	c.partIfDone()
}

// partIfDone lets the client close the connection if all calls are answered.
func (c *conn) partIfDone() {
	if c.leaving == refusing && len(c.calls) == 0 {
		c.leaving = parting
		_ = c.raw.SetReadDeadline(time.Now().Add(partingTime))
	}
}
