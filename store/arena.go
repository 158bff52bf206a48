package store

// arena is a shard's places for one kind of value, in slabs as its slots are. A free one links to the next.
type arena[T any, P linked[T]] struct {
	slabs   []*[slabSize]T // nil where it was given back
	places  places
	reserve *reserve[[slabSize]T] // nil: slabs come from the allocator
}

type linked[T any] interface {
	*T
	link() *uint32
}

func (a *arena[T, P]) at(n uint32) *T { return &a.slabs[n>>slabBits][n&(slabSize-1)] }

// take returns a place, which is as it was when it was put back, or all zero.
func (a *arena[T, P]) take() (uint32, *T) {
	k, there := a.places.lowest()
	if !there {
		if k == len(a.slabs) {
			a.slabs = append(a.slabs, nil)
		}
		if a.reserve != nil {
			a.slabs[k] = a.reserve.take()
		} else {
			a.slabs[k] = new([slabSize]T)
		}
		a.places.add(k)
	}
	n, fresh := a.places.take(k)
	p := a.at(n)
	if !fresh {
		a.places.pop(k, *P(p).link())
	}
	return n, p
}

func (a *arena[T, P]) put(n uint32) {
	next, goes := a.places.put(n)
	*P(a.at(n)).link() = next
	if goes != 0 {
		a.places.remove(goes)
		a.slabs[goes] = nil
	}
}

// drop forgets all places.
func (a *arena[T, P]) drop() { a.slabs, a.places = nil, places{} }
