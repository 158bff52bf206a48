//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"celld/resp/wire"
)

// idle measures the memory of a process that has just started. Then it opens connections and measures their memory while they do
// nothing: before their first command, and after one command on each.
type idle struct{ connections int }

// rest is how long nothing is done before memory is read: redis-server takes 2 s to shrink the buffer of an idle client.
const rest = 5 * time.Second

func (w idle) fits(p *peer) bool { return !p.pings() && !p.special() } // the same server as with redis-cell

func (w idle) quick() work { return w }

func (w idle) seconds(*peer) float64 { return 14 }

func (w idle) run(b *bench, p *peer) (sample, error) {
	if err := raiseOpenFiles(uint64(w.connections) + 200); err != nil {
		return nil, err
	}
	s, err := b.start(p, room{connections: w.connections + 100})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	b.sleep(time.Second)
	fresh, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	if err := (load{server: s, keys: 1000, keyLen: 16, limit: fixedLimit}).run(b.ctx); err != nil {
		return nil, err
	}
	b.sleep(time.Second)
	before, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	connections := make([]net.Conn, 0, w.connections)
	defer func() {
		for _, c := range connections {
			_ = c.(*net.TCPConn).SetLinger(0) // so that ten thousand of them leave no ports waiting
			c.Close()
		}
	}()
	for range w.connections {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			return nil, err
		}
		connections = append(connections, c)
	}
	b.sleep(rest)
	silent, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	// Each is answered, so none was refused or closed to make place.
	words := p.words()
	words[1] = "key:000000000000"
	request, reply := wire.AppendCommand(nil, words...), make([]byte, 256)
	for _, c := range connections {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		if n, err := io.ReadAtLeast(c, reply, len("*5\r\n")); err != nil || reply[0] != '*' {
			return nil, fmt.Errorf("the server answers %q: %v", reply[:n], err)
		}
	}
	b.sleep(rest)
	after, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	each := func(rss int64) float64 { return float64(rss-before) / 1024 / float64(w.connections) }
	return sample{kbPerSilent: each(silent), kbPerConnection: each(after), rssMB: float64(after) / 1e6, freshMB: float64(fresh) / 1e6}, nil
}
