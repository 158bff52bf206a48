package store

// Values of State.ExpiryNS that are no instant.
const (
	AtTAT    int64 = 0  // lives as long as its TAT, as CL.THROTTLE writes it
	NoExpiry int64 = -1 // TTL reads -1; it still dies when its TAT passes, as nothing is left to remember then
)

// Value is what is kept under a key, in wall time: see wallAhead.
type Value struct {
	TAT      uint64 // Unix ns; where a key holds limits, when the last of them has nothing left to remember
	ExpiryNS int64  // AtTAT, NoExpiry, or an instant, Unix ns
	Kind     Kind
	Limits   *Limits // to put: what a key is to hold, nil for what it holds. Export and Drain tell them, valid until fn returns
}

// Access says when a call happens, whether it counts as a use of the key, and what its caller may do.
type Access struct {
	NowNS   int64 // limit time, Unix ns, not negative
	Lane    uint8 // callers that run at once count their calls faster in lanes of their own; any will do
	NoTouch bool  // leave the LRU order and the idle time as they are (CLIENT NO-TOUCH). A new key is new all the same
	May     Right // the caller's, to keys that it does not name: see links.go
}

// over reports whether a state would be dead at once if it were put now: its expiry, which is wall time, has passed, or it lives as
// long as its TAT, which is limit time, and that has passed. Limits always live as long as their TAT.
func (st Value) over(nowNS, wallNS int64) bool {
	if st.Kind == HoldsLimits && st.TAT <= uint64(nowNS) {
		return true
	}
	switch st.ExpiryNS {
	case NoExpiry:
		return false
	case AtTAT:
		return st.TAT <= uint64(nowNS)
	}
	return st.ExpiryNS <= wallNS
}
