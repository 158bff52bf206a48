package grpc

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// read does what a frame says. The error is an http2.StreamError, an http2.ConnectionError, or that of the connection.
func (c *conn) read(f http2.Frame) error {
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		if f.HasPriority() && f.Priority.StreamDep == id {
			return streamError(id, http2.ErrCodeProtocol)
		}
		return c.readHeaders(f)
	case *http2.DataFrame:
		return c.readData(f)
	case *http2.SettingsFrame:
		return c.readSettings(f)
	case *http2.WindowUpdateFrame:
		return c.readWindow(f)
	case *http2.PingFrame:
		switch {
		case !f.IsAck():
			_ = c.framer.WritePing(true, f.Data)
		case f.Data == lastPing && c.leaving == told:
			c.refuse()
		}
	case *http2.RSTStreamFrame:
		if c.isIdle(id) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if call := c.calls[id]; call != nil {
			c.remove(call)
		}
		c.forsaken = without(c.forsaken, id)
	case *http2.PriorityFrame:
		if f.StreamDep == id {
			return streamError(id, http2.ErrCodeProtocol)
		}
	case *http2.PushPromiseFrame, *http2.ContinuationFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY, too: the client closes the connection when it has its answers
}

func streamError(id uint32, code http2.ErrCode) error {
	return http2.StreamError{StreamID: id, Code: code}
}

// isIdle is whether no call has had the id.
func (c *conn) isIdle(id uint32) bool { return id > c.last || id%2 == 0 }

// reset ends a call with an error of HTTP/2.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	_ = c.framer.WriteRSTStream(id, code)
	call := c.calls[id]
	if call == nil || !call.received {
		c.forsake(id)
	}
	if call != nil {
		c.remove(call)
	}
}

// forsake notes a call that has ended before its client has sent all of it. What still comes is ignored.
func (c *conn) forsake(id uint32) {
	if len(c.forsaken) == MaxCalls {
		c.forsaken = slices.Delete(c.forsaken, 0, 1)
	}
	c.forsaken = append(c.forsaken, id)
}

// readHeaders begins a call, or ends its message by trailers.
func (c *conn) readHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if call := c.calls[id]; call != nil || id <= c.last && slices.Contains(c.forsaken, id) {
		switch {
		case call != nil && call.received:
			return streamError(id, http2.ErrCodeStreamClosed)
		case !f.StreamEnded() || len(f.PseudoFields()) > 0:
			return streamError(id, http2.ErrCodeProtocol)
		case call == nil:
			return nil
		}
		return c.receive(call, nil, true)
	}
	switch {
	case id%2 == 0:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case id <= c.last:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	c.last = id
	if len(c.calls) >= MaxCalls || c.leaving >= refusing {
		return streamError(id, http2.ErrCodeRefusedStream)
	}
	call := &call{id: id, window: c.firstWindow, received: f.StreamEnded(), length: -1}
	c.calls[id] = call
	if f.Truncated {
		c.reject(call, 431, ResourceExhausted, "the headers have more than %d bytes", maxHeaders)
	} else if err := c.begin(call, f); err != nil {
		return err
	}
	if f.StreamEnded() {
		return c.receive(call, nil, true)
	}
	return nil
}

// headers are those of a call that say what it asks for.
type headers struct {
	verb, path, scheme, contentType, encoding string
}

// readFields reads the headers of a call. It returns false where HTTP/2 does not allow them.
func (h *headers) readFields(call *call, fields []hpack.HeaderField) (ok bool) {
	for i := range fields {
		value := fields[i].Value
		switch fields[i].Name {
		case ":method":
			h.verb = value
		case ":path":
			h.path = value
		case ":scheme":
			h.scheme = value
		case "content-type":
			h.contentType = value
		case "grpc-encoding":
			h.encoding = value
		case "content-length":
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || call.length >= 0 && call.length != int64(n) {
				return false
			}
			call.length = int64(n)
		case "te":
			if value != "trailers" {
				return false
			}
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return false
		}
	}
	return h.verb != "" && h.path != "" && h.scheme != ""
}

// begin finds the method of a call.
func (c *conn) begin(call *call, f *http2.MetaHeadersFrame) error {
	var h headers
	if !h.readFields(call, f.Fields) {
		return streamError(call.id, http2.ErrCodeProtocol)
	}
	method, known := c.Methods[h.path]
	switch service := h.path[:strings.LastIndexByte(h.path, '/')+1]; {
	case h.verb != "POST":
		c.reject(call, 405, Internal, "a call of gRPC is a POST, not %q", h.verb)
	case !isGRPC(h.contentType):
		c.reject(call, 415, InvalidArgument, "a call of gRPC has the content-type application/grpc, not %q", h.contentType)
	case !known && service != "" && c.hasService(service):
		c.reject(call, 200, Unimplemented, "unknown method %s of service %s", h.path[len(service):], strings.Trim(service, "/"))
	case !known:
		c.reject(call, 200, Unimplemented, "unknown service %s", strings.Trim(service, "/"))
	case h.encoding != "" && h.encoding != "identity":
		c.reject(call, 200, Unimplemented, "compression by %q is not supported", h.encoding)
	}
	call.method = method
	return nil
}

// hasService is whether a method of the service, which is written as "/name/", is known.
func (c *conn) hasService(service string) bool {
	for path := range c.Methods {
		if strings.HasPrefix(path, service) {
			return true
		}
	}
	return false
}

// isGRPC is whether a content type is gRPC's, in any form of its messages.
func isGRPC(contentType string) bool {
	rest, is := strings.CutPrefix(contentType, "application/grpc")
	return is && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// readData takes a part of a message, and lets the client send as much again.
func (c *conn) readData(f *http2.DataFrame) error {
	id, size := f.StreamID, f.Length
	if c.isIdle(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if c.taken += size; c.taken >= usualWindow/4 {
		_ = c.framer.WriteWindowUpdate(0, c.taken)
		c.taken = 0
	}
	call := c.calls[id]
	switch {
	case call == nil && slices.Contains(c.forsaken, id):
		return nil
	case call == nil || call.received:
		return streamError(id, http2.ErrCodeStreamClosed)
	case size > 0 && !f.StreamEnded():
		_ = c.framer.WriteWindowUpdate(id, size)
	}
	return c.receive(call, f.Data(), f.StreamEnded())
}

// readSettings keeps those that matter for what is sent, and says so.
func (c *conn) readSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.tableSet = true
		case http2.SettingInitialWindowSize:
			more := int64(s.Val) - c.firstWindow
			c.firstWindow += more
			for _, call := range c.calls {
				if call.window += more; call.window > mostWindow {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = c.framer.WriteSettingsAck()
	c.sendWaiting()
	return nil
}

// readWindow sends what the client takes now.
func (c *conn) readWindow(f *http2.WindowUpdateFrame) error {
	id, more := f.StreamID, int64(f.Increment)
	if id == 0 {
		if c.window += more; c.window > mostWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	} else if c.isIdle(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	} else if call := c.calls[id]; call != nil {
		if call.window += more; call.window > mostWindow {
			return streamError(id, http2.ErrCodeFlowControl)
		}
	}
	c.sendWaiting()
	return nil
}

var errGone = errors.New("the client has gone")
