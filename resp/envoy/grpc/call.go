package grpc

import (
	"encoding/binary"
	"runtime"
	"slices"

	"golang.org/x/net/http2"
)

// call is a call, which is a stream of HTTP/2. Who holds the connection's mu uses it.
type call struct {
	id     uint32
	method Method
	in     []byte // the message and its prefix, as far as it has come
	length int64  // bytes that content-length still expects; -1: it is not given
	held   int    // bytes that count towards MaxHeld

	received bool          // the client sends no more
	answered bool          // the answer is complete, though the client may not have it
	headed   bool          // the headers of the answer are written
	gone     bool          // the client does not want an answer any more
	runs     bool          // a goroutine runs it
	late     bool          // it waited for its client when tidy last looked
	done     chan struct{} // is closed when a Stream is to end; nil: it is none, or has been told

	window   int64  // bytes of answers that the client takes now
	rest     []byte // bytes for which there was no window
	trailers []byte // follow rest; nil: more may come
}

// prefixSize is what is before a message: a byte that says whether it is compressed, and its length.
const prefixSize = 5

// hold sets how many bytes a call holds. It returns false, and changes nothing, if all calls of all connections would hold too many.
func (c *conn) hold(call *call, bytes int) bool {
	more := int64(bytes - call.held)
	if more != 0 && c.held.Add(more) > MaxHeld && more > 0 {
		c.held.Add(-more)
		return false
	}
	call.held = bytes
	return true
}

// receive takes a part of a call's message. last is whether it is the last one. The error is of a message with another length than its
// headers say.
func (c *conn) receive(call *call, part []byte, last bool) error {
	call.received = last
	if call.answered { // by an error
		return nil
	}
	if call.length >= 0 {
		if call.length -= int64(len(part)); call.length < 0 || last && call.length > 0 {
			return streamError(call.id, http2.ErrCodeProtocol)
		}
	}
	whole := part
	if len(call.in) > 0 || !last {
		call.in = append(call.in, part...)
		whole = call.in
	}
	if !c.hold(call, cap(call.in)) {
		c.rejectMuch(call)
		return nil
	}
	size := int64(-1)
	if len(whole) >= prefixSize {
		size = int64(binary.BigEndian.Uint32(whole[1:]))
	}
	switch has := int64(len(whole) - prefixSize); {
	case size > MaxMessage:
		c.reject(call, 200, ResourceExhausted, "the message has %d bytes, and may have %d", size, MaxMessage)
	case size >= 0 && whole[0] != 0:
		c.reject(call, 200, Unimplemented, "the message is compressed, which is not supported")
	case size >= 0 && has > size:
		c.reject(call, 200, Unimplemented, "a call has one message")
	case !last:
	case has < size || size < 0:
		c.reject(call, 200, Internal, "the message is cut off")
	default:
		call.in = nil
		c.run(call, whole[prefixSize:])
	}
	return nil
}

// run calls the method of a call, or queues the call where others are answered beside it.
func (c *conn) run(call *call, in []byte) {
	if c.Waits || call.method.Stream != nil {
		if !c.hold(call, len(in)) {
			c.rejectMuch(call)
			return
		}
		call.in = slices.Clone(in)
		c.queue = append(c.queue, call)
		c.runQueued()
		return
	}
	out, err := c.unary(call, in, c.scratch)
	c.answer(call, out, err)
	if cap(out) <= frameSize {
		c.scratch = out
	}
}

// runQueued gives a goroutine to each call of the queue, up to MaxCalls at once. A call waits only for those that nobody wants any more,
// which end by themselves.
func (c *conn) runQueued() {
	for ; len(c.queue) > 0 && c.running < MaxCalls; c.running++ {
		call := c.queue[0]
		c.queue = slices.Delete(c.queue, 0, 1)
		in := call.in
		call.in, call.runs = nil, true
		if call.method.Stream == nil {
			go func() {
				out, err := c.unary(call, in, nil)
				c.finish(call, out, err)
			}()
			continue
		}
		call.done = make(chan struct{})
		to := &Sender{c, call, call.done}
		if c.leaving >= told { // the client may not know that yet
			call.cancel()
		}
		go func() {
			c.finish(call, nil, c.stream(call, in, to))
		}()
	}
}

// unary calls a method of one answer, which begins with its prefix.
func (c *conn) unary(call *call, in, room []byte) (out []byte, err error) {
	defer c.survive(&err)
	return call.method.Unary(in, append(room[:0], 0, 0, 0, 0, 0))
}

func (c *conn) stream(call *call, in []byte, to *Sender) (err error) {
	defer c.survive(&err)
	return call.method.Stream(in, to)
}

// survive makes an error of a panic.
func (c *conn) survive(err *error) {
	if cause := recover(); cause != nil {
		c.Panicked(cause)
		*err = Errorf(Internal, "internal error")
	}
}

// finish answers a call that a goroutine has run.
func (c *conn) finish(call *call, out []byte, err error) {
	c.mu.Lock()
	c.running--
	if call.runs = false; call.gone {
		c.hold(call, 0)
	} else {
		c.answer(call, out, err)
	}
	c.runQueued()
	c.mu.Unlock()
	runtime.Gosched() // so that answers that are there together are sent together
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.flush()
}

// answer ends a call, with an answer or an error.
func (c *conn) answer(call *call, out []byte, err error) {
	if err != nil {
		status := 200
		if call.headed {
			status = 0
		}
		c.end(call, trailersOf(err, status))
		return
	}
	c.head(call)
	if out != nil {
		c.send(call, out)
	}
	if !call.gone {
		c.end(call, okTrailers)
	}
}

// reject answers a call with an error before it has run.
func (c *conn) reject(call *call, httpStatus int, code Code, format string, args ...any) {
	call.in = nil
	c.end(call, trailersOf(Errorf(code, format, args...), httpStatus))
}

// rejectMuch is reject where calls hold as much as they may.
func (c *conn) rejectMuch(call *call) {
	c.reject(call, 200, ResourceExhausted, "calls hold %d MB, and may not hold more", MaxHeld>>20)
}

// head begins an answer.
func (c *conn) head(call *call) {
	if !call.headed {
		call.headed = true
		c.writeHeaders(call.id, answerHeaders, false)
	}
}

// send sends a message with its prefix, or a part of it, and the rest later. It resets the call if there is no room for the rest.
func (c *conn) send(call *call, message []byte) {
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-prefixSize))
	if len(call.rest) == 0 {
		message = c.sendSome(call, message)
		if len(message) > 0 {
			c.waiting = append(c.waiting, call)
		}
	}
	if !c.hold(call, len(call.rest)+len(message)) {
		c.reset(call.id, http2.ErrCodeEnhanceYourCalm)
		return
	}
	call.rest = append(call.rest, message...)
}

// sendSome sends what the client takes, and returns the rest.
func (c *conn) sendSome(call *call, data []byte) (rest []byte) {
	for len(data) > 0 {
		n := min(int64(len(data)), call.window, c.window, frameSize)
		if n <= 0 {
			break
		}
		_ = c.framer.WriteData(call.id, false, data[:n])
		call.window -= n
		c.window -= n
		data = data[n:]
	}
	return data
}

// end ends a call with trailers, when all before them is sent.
func (c *conn) end(call *call, trailers []byte) {
	call.answered = true
	if len(call.rest) > 0 {
		call.trailers = trailers
		return
	}
	c.writeHeaders(call.id, trailers, true)
	if !call.received {
		_ = c.framer.WriteRSTStream(call.id, http2.ErrCodeNo) // so that it sends no more
		c.forsake(call.id)
	}
	c.remove(call)
}

// sendWaiting sends what had to wait, first what has waited longest.
func (c *conn) sendWaiting() {
	if len(c.waiting) == 0 {
		return
	}
	waiting := c.waiting
	c.waiting = nil
	for _, call := range waiting {
		switch call.rest = c.sendSome(call, call.rest); {
		case call.gone:
		case len(call.rest) > 0:
			c.waiting = append(c.waiting, call)
		case call.trailers != nil:
			c.end(call, call.trailers)
		}
	}
}

// writeHeaders writes a block of headers. It begins with the size of the table, 0, where the client waits for one.
func (c *conn) writeHeaders(id uint32, block []byte, last bool) {
	if c.tableSet {
		const noTable = 0x20
		c.tableSet = false
		block = append([]byte{noTable}, block...)
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: last, EndHeaders: true})
}

// cancel tells a Stream to end.
func (call *call) cancel() {
	if call.done != nil {
		close(call.done)
		call.done = nil
	}
}

// remove removes a call that has ended, or that the client does not want any more.
func (c *conn) remove(call *call) {
	call.gone, call.rest = true, nil
	c.waiting, c.queue = without(c.waiting, call), without(c.queue, call)
	call.cancel()
	if !call.runs {
		c.hold(call, 0)
	}
	delete(c.calls, call.id)
	c.partIfDone()
}

// without is a list without one of its elements, if it is among them.
func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Sender sends answers of a Stream.
type Sender struct {
	c    *conn
	call *call
	done chan struct{}
}

// Done is closed when the Stream is to end: the client or the server goes.
func (s *Sender) Done() <-chan struct{} { return s.done }

// Send sends an answer. It fails if the client has gone, or has not taken the answers before.
func (s *Sender) Send(answer []byte) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	switch {
	case s.call.gone:
		return errGone
	case len(s.call.rest) > 0:
		return Errorf(ResourceExhausted, "the client does not take the answers")
	}
	s.c.head(s.call)
	s.c.send(s.call, append(make([]byte, prefixSize, prefixSize+len(answer)), answer...))
	return s.c.flush()
}
