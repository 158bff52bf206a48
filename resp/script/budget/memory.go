package budget

import (
	"errors"
	"runtime"
	"runtime/metrics"
)

// MaxMemory is how many more bytes the process may hold than when the script began. A limiter's script needs kilobytes.
const MaxMemory = 16 << 20

// ErrMemory ends a script that takes more.
var ErrMemory = errors.New("ERR not enough memory: a script may use 16 MB")

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

// LookBytes is how many bytes are announced between two looks at most.
const LookBytes = 1 << 20

const lookTicks = 8

func (m *meter) tick() error {
	if m.ticks++; m.started && m.ticks%lookTicks != 0 {
		return nil
	}
	return m.look()
}

// add announces an allocation.
func (m *meter) add(bytes int) error {
	if bytes > MaxMemory {
		return ErrMemory
	}
	if m.pending += bytes; m.pending < LookBytes {
		return nil
	}
	return m.look()
}

func (m *meter) look() error {
	held := HeapBytes() + uint64(m.pending)
	if !m.started {
		m.started, m.base = true, held-uint64(m.pending)
		m.most = m.base + MaxMemory
	}
	if held > m.most {
		runtime.GC()
		held = HeapBytes() + uint64(m.pending)
		if held > m.base+MaxMemory {
			return ErrMemory
		}
		m.most = max(m.base, held+MaxMemory/2) + MaxMemory/2
	}
	m.pending = 0
	return nil
}

// HeapBytes is how many bytes the objects of the process take. It takes 0.4 µs.
func HeapBytes() uint64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}
