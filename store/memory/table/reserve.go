package table

import (
	"sync/atomic"
	"unsafe"
)

// reserve keeps blocks of memory ready for a store that grows. Taking one from the allocator costs 10 µs in page faults as
// it is written to for the first time, and milliseconds where the machine itself must first get the memory from its host
// (measured: 2 to 5 ms, ten times while 10M keys came). A goroutine, which lives only as long as there is something to do, fills the
// reserve and takes these faults.
//
// It is 1/64 of what is in use and reserveMost bytes at most, so that a small store has none.
type reserve[T any] struct {
	blocks  chan *T
	used    atomic.Int64
	filling atomic.Bool
}

const (
	reserveMost = 1 << 20
	pageSize    = 4096
)

func (r *reserve[T]) init() {
	var block T
	r.blocks = make(chan *T, reserveMost/int(unsafe.Sizeof(block)))
}

// newBlock returns a block that is all zero.
func (r *reserve[T]) newBlock() *T {
	r.used.Add(1)
	var block *T
	select {
	case block = <-r.blocks:
	default:
		block = new(T)
	}
	if len(r.blocks) < r.want()/2 && r.filling.CompareAndSwap(false, true) {
		go r.fill()
	}
	return block
}

func (r *reserve[T]) want() int { return int(min(r.used.Load()/64, int64(cap(r.blocks)))) }

func (r *reserve[T]) fill() {
	for len(r.blocks) < r.want() { // nobody else adds any, so that it never waits
		block := new(T)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(block)), unsafe.Sizeof(*block))
		for i := 0; i < len(bytes); i += pageSize {
			bytes[i] = 0 // the page fault
		}
		r.blocks <- block
	}
	r.filling.Store(false)
}

// drop forgets what is ready and in use.
func (r *reserve[T]) drop() {
	r.used.Store(0)
	for len(r.blocks) > 0 {
		select {
		case <-r.blocks:
		default:
		}
	}
}

// Reserves is what the shards of a store grow by.
type Reserves struct {
	slabs  reserve[slab]
	tails  reserve[[SlabSize]tail]
	chunks reserve[chunkBlock]
}

func (m *Reserves) Init() {
	m.slabs.init()
	m.tails.init()
	m.chunks.init()
}

func (m *Reserves) Drop() {
	m.slabs.drop()
	m.tails.drop()
	m.chunks.drop()
}
