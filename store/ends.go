package store

import "container/heap"

// endHeap orders slots by boundNS, a lower bound of when each ends. Nothing ends before the bound at the top, so that
// tells whether anything may be due; a slot at the top that ends later is given its true end and sinks. Each such step
// is paid for by the calls that moved the end since the last.
type endHeap []*slot

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].boundNS < h[j].boundNS }

func (h endHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapPos, h[j].heapPos = uint32(i), uint32(j)
}

func (h *endHeap) Push(x any) {
	e := x.(*slot)
	e.heapPos = uint32(len(*h))
	*h = append(*h, e)
}

func (h *endHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

func (h endHeap) nextNS() uint64 {
	if len(h) == 0 {
		return never
	}
	return h[0].boundNS
}

// sweep removes up to max dead slots in at most perLock steps. It returns how many, and whether it knows of one more.
func (sh *shard) sweep(nowNS int64, max int) (removed int, more bool) {
	for range perLock {
		if sh.ends.nextNS() > uint64(nowNS) {
			return removed, false
		}
		e := sh.ends[0]
		switch {
		case !e.dead(nowNS):
			e.boundNS = e.endNS()
			heap.Fix(&sh.ends, 0)
			sh.publish()
		case removed >= max:
			return removed, true
		default:
			sh.expire(e)
			removed++
		}
	}
	return removed, false
}

// Sweep removes up to max dead keys, in steps with short locks, and says exactly whether there are more. Call it every
// 100 ms or so: memory is then that of the live keys, and the calls that must first get rid of dead ones (Len, Random,
// inserts at capacity) find few.
//
// It also evicts what inserts under way while a limit was lowered have put above it, which is a few keys at most.
func (s *Store) Sweep(nowNS int64, max int) (removed int, more bool) {
	s.trim(nowNS)
	start := int(s.sweeps.Add(1))
	for i := range s.shards {
		sh := &s.shards[(start+i)&(len(s.shards)-1)]
		for sh.nextEndNS.Load() <= uint64(nowNS) {
			sh.lock(nowNS)
			n, more := sh.sweep(nowNS, max-removed)
			sh.mu.Unlock()
			removed += n
			if more && removed >= max {
				return removed, true
			}
		}
	}
	return removed, false
}

// sweepAll removes all dead keys.
func (s *Store) sweepAll(nowNS int64) {
	for more := true; more; {
		_, more = s.Sweep(nowNS, 1<<20)
	}
}
