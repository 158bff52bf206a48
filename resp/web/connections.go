package web

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connections is a listener that, together with others, serves so many at once, and refuses one more: it would not answer whoever waits, a probe above all, if
// it accepted no more.
type connections struct {
	net.Listener
	most    int64
	tls     bool
	open    *atomic.Int64
	refused func(client net.Addr)
}

// limitConnections has all listeners together serve most connections. It calls refused for each one more.
func limitConnections(listeners []net.Listener, most int, tls bool, refused func(client net.Addr)) (limited []net.Listener) {
	open := new(atomic.Int64)
	for _, ln := range listeners {
		limited = append(limited, &connections{Listener: ln, most: int64(most), tls: tls, open: open, refused: refused})
	}
	return limited
}

const fullAnswer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &connection{Conn: conn, of: l}, nil
		}
		l.open.Add(-1)
		l.refused(conn.RemoteAddr())
		if !l.tls { // who speaks TLS would have to shake hands first
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
