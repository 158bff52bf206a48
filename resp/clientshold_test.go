package resp

import (
	"slices"
	"testing"
)

// The collector is told what clients' buffers hold, in steps of 4 MB, with maxmemory, or what keys may still hold above it.
func TestClientsHoldIsTold(t *testing.T) {
	w := newWorld(t, "maxmemory", "64mb")
	var told []int64
	w.sessions.Config.OnMemory = func(maxMemory, clients int64) { told = append(told, maxMemory>>20, clients>>20) }
	w.connect()
	w.connect()
	all := w.sessions.Clients.All()
	c, d := all[0], all[1]
	c.Unsent.Store(6 << 20)
	d.QueryBytes.Store(3 << 20)
	w.tellClientsHold()
	w.tellClientsHold()
	w.connect().want("CONFIG SET maxmemory 32mb", "+OK\r\n")
	c.Unsent.Store(0)
	w.tellClientsHold()
	w.sessions.Store.SetCapacity(1000, 48<<20, false) // as while keys are evicted
	w.tellClientsHold()
	w.sessions.Store.SetCapacity(1000, 32<<20, false)
	w.tellClientsHold()
	w.tellClientsHold()
	if want := []int64{64, 8, 32, 8, 32, 0, 48, 0, 32, 0}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
