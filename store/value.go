package store

// Values of Value.ExpiryNS that are no instant.
const (
	AtTAT    int64 = 0  // lives as long as its TAT, as CL.THROTTLE writes it
	NoExpiry int64 = -1 // TTL reads -1; the key still dies when its TAT passes, as nothing is left to remember then
)

// Value is what is kept under a key, in wall time: see table.WallAhead.
type Value struct {
	TAT         uint64  // Unix ns; where a key holds limits, when the last of them has nothing left to remember
	ExpiryNS    int64   // AtTAT, NoExpiry, or an instant, Unix ns
	HoldsLimits bool    // the key holds limits, of CL.TAKE; false: a TAT, of CL.THROTTLE
	Limits      *Limits // to put: what the key is to hold; nil: what it holds already. From Export and Drain: valid until fn returns
}

// Type is the type that Redis's tools see.
func (v Value) Type() string {
	if v.HoldsLimits {
		return "hash"
	}
	return "string"
}

// Access says when a call happens, whether it counts as a use of the key, and what its caller may do.
type Access struct {
	NowNS   int64 // limit time, Unix ns, not negative
	Lane    uint8 // the caller's core: calls are counted faster in a lane of its own
	NoTouch bool  // leave the LRU order and the idle time as they are (CLIENT NO-TOUCH). A new key is new all the same
	May     Right // the caller's, to keys that it does not name: see rights.go
}
