//go:build all

package engine

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"celld/integration_test/harness/engines"
)

// farAway is the way to an engine that takes a while in each direction.
type farAway struct {
	addr  string
	delay atomic.Int64 // ns
}

// newFarAway listens for connections to an engine until the test ends.
func newFarAway(t *testing.T, engine string) *farAway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &farAway{addr: l.Addr().String()}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", engine)
			if err != nil {
				in.Close()
				continue
			}
			go p.carry(in, out)
			go p.carry(out, in)
		}
	}()
	return p
}

// carry passes on what comes, each piece after the delay. Pieces are under way together.
func (p *farAway) carry(from, to net.Conn) {
	defer to.Close()
	defer from.Close()
	type piece struct {
		bytes []byte
		at    time.Time
	}
	pieces := make(chan piece, 1<<14)
	defer close(pieces)
	go func() {
		for one := range pieces {
			time.Sleep(time.Until(one.at))
			if _, err := to.Write(one.bytes); err != nil {
				from.Close()
			}
		}
	}()
	for {
		buf := make([]byte, 64<<10)
		n, err := from.Read(buf)
		if n > 0 {
			pieces <- piece{buf[:n], time.Now().Add(time.Duration(p.delay.Load()))}
		}
		if err != nil {
			return
		}
	}
}

// TestSlowEngine delays answers by 100 ms, for which all calls wait, and then by more than calls wait: those that were sent may be
// counted, or not.
func TestSlowEngine(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t)
	p := newFarAway(t, f.Nodes[0].Addr)
	l := (&load{clients: 4}).start(t, shared(t, "redis://"+p.addr, 2, "--store-timeout", "1s"), kinds...)
	p.delay.Store(int64(50 * time.Millisecond))
	l.goesOn(time.Now())
	p.delay.Store(int64(2 * time.Second))
	l.fails("the engine has not answered in time; the call may have been counted")
	at := time.Now()
	p.delay.Store(0)
	l.within("the end of a slow engine", at, 2*time.Second+returns) // what was delayed arrives before what is sent now
	l.check(0)
}
