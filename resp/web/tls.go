package web

import (
	"crypto/tls"
	"net"
	"strings"

	"celld/resp"
)

// secured is a listener whose connections have TLS. Each gets the config of its time with that config's own keys for sessions, so no client
// resumes one that authorities have vouched for that are gone. With GetConfigForClient all would have the keys of one config.
type secured struct {
	net.Listener
	config func() *tls.Config
}

func (l secured) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(conn, l.config()), nil
}

// mistakes is where net/http logs what peers do wrong. Of that only handshakes that failed are of interest: what is no request is answered.
// Panics do not get there.
type mistakes struct{ server *resp.Server }

func (m mistakes) Write(line []byte) (int, error) {
	why, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "http: TLS handshake error from ")
	if ok && !strings.HasSuffix(why, ": EOF") { // a look whether the port is open
		m.server.HTTPHandshakeFailed(why)
	}
	return len(line), nil
}
