package script

import (
	"errors"
	"runtime"
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// maxMemory is how many more bytes the process may hold than when the script began. A limiter's script needs kilobytes.
const maxMemory = 16 << 20

var errMemory = errors.New("ERR not enough memory: a script may use 16 MB")

// meter bounds the memory of a script. Go cannot bound what a goroutine allocates, so meter looks at the whole heap. It looks every
// 8 ticks, in which single instructions add a few megabytes at most, and before a large allocation (a long string, a table
// with a gap). Garbage counts until it is collected, so above the bound meter runs a collection and looks again.
type meter struct {
	started bool
	ticks   int
	pending int // bytes announced since the last look
	base    uint64
	most    uint64
}

const (
	lookTicks = 8
	lookBytes = 1 << 20

	instructionBytes = 64 // reading so many bytes takes about as long as an instruction
)

func (m *meter) tick() error {
	if m.ticks++; m.started && m.ticks%lookTicks != 0 {
		return nil
	}
	return m.look()
}

// add announces an allocation.
func (m *meter) add(bytes int) error {
	if bytes > maxMemory {
		return errMemory
	}
	if m.pending += bytes; m.pending < lookBytes {
		return nil
	}
	return m.look()
}

func (m *meter) look() error {
	held := heapBytes() + uint64(m.pending)
	if !m.started {
		m.started, m.base = true, held-uint64(m.pending)
		m.most = m.base + maxMemory
	}
	if held > m.most {
		runtime.GC()
		held = heapBytes() + uint64(m.pending)
		if held > m.base+maxMemory {
			return errMemory
		}
		m.most = max(m.base, held+maxMemory/2) + maxMemory/2
	}
	m.pending = 0
	return nil
}

// heapBytes takes 0.4 µs.
func heapBytes() uint64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}

// spend counts bytes that a library function reads as instructions, so that the next tick comes sooner.
func (e *Engine) spend(bytes int) { e.left -= bytes / instructionBytes }

// take announces an allocation of a library function. Above the bound it ends the script.
func (e *Engine) take(L *lua.LState, bytes int) {
	e.spend(bytes)
	if err := e.memory.add(bytes); err != nil {
		e.endBy(err)
		L.RaiseError("not enough memory")
	}
}
