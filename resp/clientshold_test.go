package resp

import (
	"slices"
	"strings"
	"testing"

	"celld/resp/client"
	"celld/resp/sessiontest"
)

// The collector is told what clients' buffers hold, in steps of 4 MB, with maxmemory, or what keys may still hold above it.
func TestClientsHoldIsTold(t *testing.T) {
	w := newWorld(t, "maxmemory", "64mb")
	var told []int64
	w.cfg.OnMemory = func(maxMemory, clients int64) { told = append(told, maxMemory>>20, clients>>20) }
	c, d := w.connect(), w.connect()
	c.client.Unsent.Store(6 << 20)
	d.client.QueryBytes.Store(3 << 20)
	w.tellClientsHold()
	w.tellClientsHold()
	c.want("CONFIG SET maxmemory 32mb", "+OK\r\n")
	c.client.Unsent.Store(0)
	w.tellClientsHold()
	w.store.SetLimits(1000, 48<<20, false) // as while keys are evicted
	w.tellClientsHold()
	w.store.SetLimits(1000, 32<<20, false)
	w.tellClientsHold()
	w.tellClientsHold()
	if want := []int64{64, 8, 32, 8, 32, 0, 48, 0, 32, 0}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// CLIENT LIST shows what a peer has not read that goes on asking.
func TestUnreadRepliesAreShown(t *testing.T) {
	o := carrierTest{settings: []string{"client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		deaf := sessiontest.Dial(t, addr)
		go func() {
			_, _ = deaf.Conn.Write([]byte(strings.Repeat(sessiontest.Frame("ECHO", strings.Repeat("x", 60000)), 400)))
		}()
		least := int64(8 << 20)
		if strings.Contains(t.Name(), "goroutines") { // reads no more than it has answered
			least = 1
		}
		eventually(t, "unread replies are shown", func() bool {
			return slices.ContainsFunc(srv.clients.All(), func(c *client.Client) bool { return c.Unsent.Load() >= least })
		})
	})
}
