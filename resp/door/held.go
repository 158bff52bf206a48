package door

import (
	"sync/atomic"

	"celld/store"
)

// Held counts the bytes of what waits for an engine.
type Held struct {
	bytes atomic.Int64
	Most  int64 // by the engine
}

// Hold counts bytes until Let. Where too much waits, it counts none, and the error is store.ErrBusy.
func (h *Held) Hold(bytes int64) error {
	if h.bytes.Add(bytes) > h.Most {
		h.bytes.Add(-bytes)
		return store.ErrBusy
	}
	return nil
}

// Bytes is how many are counted.
func (h *Held) Bytes() int64 { return h.bytes.Load() }

// Let takes bytes off again.
func (h *Held) Let(bytes int64) { h.bytes.Add(-bytes) }
