package celldtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"
)

// GRPC is a client of gRPC, by a connection of its own.
type GRPC struct {
	addr   string
	client http.Client
}

// DialGRPC makes a client of host:port.
func DialGRPC(t testing.TB, addr string) *GRPC {
	clear := &http.Protocols{}
	clear.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: clear}
	t.Cleanup(transport.CloseIdleConnections)
	return &GRPC{addr, http.Client{Transport: transport}}
}

// Begin sends a message, and returns when the answer begins. The caller closes its body.
func (c *GRPC) Begin(t testing.TB, path, message string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+c.addr+path, bytes.NewReader(GRPCMessage(message)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	return c.client.Do(r)
}

// Call sends a message, and returns the answer, and how the call has ended: a code of gRPC, and what is said about it. The code is -1 where
// the server has told none.
func (c *GRPC) Call(t testing.TB, path, message string) (answer string, code int, about string) {
	t.Helper()
	w, err := c.Begin(t, path, message)
	if err != nil {
		return "", -1, err.Error()
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		return "", -1, err.Error()
	}
	end := w.Trailer
	if w.Header.Get("Grpc-Status") != "" { // there are no others
		end = w.Header
	}
	if code, err = strconv.Atoi(end.Get("Grpc-Status")); err != nil {
		return "", -1, err.Error()
	}
	if about, err = url.PathUnescape(end.Get("Grpc-Message")); err != nil {
		t.Errorf("the message of a status: %v", err)
	}
	if len(body) > 0 {
		answer = string(body[5:])
		if !bytes.Equal(body, GRPCMessage(answer)) {
			t.Errorf("an answer is %q", body)
		}
	}
	return answer, code, about
}

// GRPCMessage is a message with what is before it: that it is not compressed, and its length.
func GRPCMessage(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}
