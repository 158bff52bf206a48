package web

import (
	"strings"

	"celld/resp"
)

// mistakes is where net/http logs the mistakes of peers. Only failed handshakes are of interest: bytes that are no request are answered.
// Panics do not get there.
type mistakes struct{ server *resp.Server }

func (m mistakes) Write(line []byte) (int, error) {
	why, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "http: TLS handshake error from ")
	if ok && !strings.HasSuffix(why, ": EOF") { // a look whether the port is open
		m.server.Door.HTTPHandshakeFailed(why)
	}
	return len(line), nil
}
