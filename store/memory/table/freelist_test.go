package table

import (
	"math/rand/v2"
	"testing"
)

// Places are handed out from the bottom, each to one.
func TestFreeList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var p FreeList
	links, used := map[uint32]uint32{}, map[uint32]bool{}
	for step := range 200_000 {
		if rnd.IntN(1000) < 500+300*(step/20_000%2*2-1) && len(used) > 0 {
			for n := range used {
				next, goes := p.put(n)
				links[n] = next
				delete(used, n)
				if goes != 0 {
					p.remove(goes)
				}
				break
			}
		} else {
			k, there := p.lowest()
			if !there {
				p.add(k)
			}
			n, fresh := p.use(k)
			if !fresh {
				p.pop(k, links[n])
			}
			if n == 0 || used[n] {
				t.Fatalf("place %d is handed out twice", n)
			}
			for low := range k {
				if p.Slabs[low].Used < SlabSize {
					t.Fatalf("slab %d gives a place, and %d has one: %+v", k, low, p.Slabs[low])
				}
			}
			used[n] = true
		}
		if p.InUse != len(used) || p.idle() < 0 {
			t.Fatalf("%d places are in use of %d slabs, and %d were handed out", p.InUse, p.There, len(used))
		}
	}
}
