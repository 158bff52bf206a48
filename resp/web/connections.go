package web

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connections is a listener that, together with others, serves so many at once, and refuses one more. If it accepted no more, those that
// wait would get no answer, a probe above all.
type connections struct {
	net.Listener
	most    int64
	open    *atomic.Int64 // of all listeners
	refused func(client net.Addr)

	// tls is for a new connection; nil: there is no TLS. Each gets the config of its time with that config's own keys for sessions,
	// so no client resumes a session for which a removed authority has vouched. With GetConfigForClient all connections would share
	// the keys of one config.
	tls func() *tls.Config
}

const fullAnswer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			if conn = (&connection{Conn: conn, of: l}); l.tls != nil {
				conn = tls.Server(conn, l.tls())
			}
			return conn, nil
		}
		l.open.Add(-1)
		l.refused(conn.RemoteAddr())
		if l.tls == nil { // who speaks TLS would have to shake hands first
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a new socket has room, so it does not wait
			_, _ = io.WriteString(conn, fullAnswer)
		}
		conn.Close()
	}
}

type connection struct {
	net.Conn
	of   *connections
	once sync.Once
}

func (c *connection) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}
