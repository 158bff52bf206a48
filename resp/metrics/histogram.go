package metrics

// Histogram says how many took how long.
type Histogram struct {
	MostNS []int64  // upper bounds
	Below  []uint64 // how many took that long at most
	Count  uint64
	SumNS  int64
}

// NewHistogram returns one of n bounds, each four times the one before.
func NewHistogram(firstNS int64, n int) *Histogram {
	h := &Histogram{MostNS: make([]int64, n), Below: make([]uint64, n)}
	for i := range h.MostNS {
		h.MostNS[i] = firstNS << (2 * i)
	}
	return h
}
