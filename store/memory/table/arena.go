package table

import (
	"slices"
	"sync/atomic"
)

// arena is a shard's places for one kind of value, in slabs as its slots are. A free one links to the next.
type arena[T any, P linked[T]] struct {
	slabs   []*[SlabSize]T // nil where it was given back
	places  Places
	reserve *reserve[[SlabSize]T] // nil: slabs come from the allocator

	seen atomic.Pointer[[]*[SlabSize]T] // slabs, for those who look without a lock
}

type linked[T any] interface {
	*T
	link() uint32
	setLink(uint32)
}

func (a *arena[T, P]) At(n uint32) *T { return placeIn(a.slabs[n>>slabBits], n) }

// placeIn is place n of the arena, if the slab is there. See slab.at for the condition.
func placeIn[T any](b *[SlabSize]T, n uint32) *T {
	if b == nil {
		return nil
	}
	return &b[n&(SlabSize-1)]
}

// Take returns a place, which is as it was when it was put back, or all zero.
func (a *arena[T, P]) take() (uint32, *T) {
	k, there := a.places.Lowest()
	if !there {
		if a.reserve != nil {
			a.set(k, a.reserve.take())
		} else {
			a.set(k, new([SlabSize]T))
		}
		a.places.Add(k)
	}
	n, fresh := a.places.Take(k)
	p := a.At(n)
	if !fresh {
		a.places.Pop(k, P(p).link())
	}
	return n, p
}

func (a *arena[T, P]) put(n uint32) {
	next, goes := a.places.Put(n)
	P(a.At(n)).setLink(next)
	if goes != 0 {
		a.places.Remove(goes)
		a.set(goes, nil)
	}
}

// set puts a slab in its place. Others may be looking at the old slice without a lock, so that is not changed.
func (a *arena[T, P]) set(k int, b *[SlabSize]T) {
	a.slabs = withSlab(a.slabs, k, b)
	view := a.slabs
	a.seen.Store(&view)
}

// withSlab has b as slab k, in a new slice where another slab was there.
func withSlab[S any](slabs []*S, k int, b *S) []*S {
	if k == len(slabs) {
		return append(slabs, b)
	}
	slabs = slices.Clone(slabs)
	slabs[k] = b
	return slabs
}

// Peek returns a place without any lock, or nil. What it holds may be changing.
func (a *arena[T, P]) Peek(n uint32) *T {
	view := a.seen.Load()
	if view == nil || int(n>>slabBits) >= len(*view) {
		return nil
	}
	return placeIn((*view)[n>>slabBits], n)
}

// drop forgets all places.
func (a *arena[T, P]) drop() {
	a.slabs, a.places = nil, Places{}
	a.seen.Store(nil)
}
