package store

import (
	"errors"
	"math"

	"celld/cell"
)

// ErrNotInteger reports a string that is no integer of 64 bits, as a TAT from 2^63 on, in Redis's words. Nothing has changed.
var ErrNotInteger = errors.New("value is not an integer or out of range")

// Count is what INCR or INCREX asks for. The zero Expire keeps the expiry.
type Count struct {
	cell.Counter
	Only   Presence
	Expire Expire
	IfNone bool  // the expiry is set only where there is none
	TimeNS int64 // of Expire
}

// Presence is a condition of a Count: what it does not meet stays, and nothing is added.
type Presence uint8

// The conditions.
const (
	Always    Presence = iota
	IfAbsent           // only a key that is not there
	IfPresent          // only a key that is there
)

// Expire says what a Count does to the expiry of its key.
type Expire uint8

// What a Count does to an expiry.
const (
	KeepExpiry Expire = iota
	NeverExpire
	ExpireIn // TimeNS from now on, in whole ms by the clock
	ExpireAt // TimeNS, Unix ns. A key that expires in the past is deleted
)

// CountRequest is one Count of a batch.
type CountRequest struct {
	Key []byte
	Count
	Value, Added int64  // out: what the key holds, and how much that is more than before
	Met          bool   // out: the condition
	Err          error  // out
	Hash         uint64 // out, of the key
}

// Decide sets the answer by what the key holds, at wallNS, Unix ns. It returns what the key is to hold if put.
func (r *CountRequest) Decide(is Value, there bool, wallNS int64) (next Value, put bool) {
	r.Value, r.Added, r.Met, r.Err = 0, 0, false, nil
	expiryNS := NoExpiry
	if there {
		var ok bool
		if r.Value, ok = is.Int64(); is.HoldsLimits || !ok {
			r.Value, r.Err = 0, ErrNotInteger
			if is.HoldsLimits {
				r.Err = ErrWrongType
			}
			return is, false
		}
		expiryNS = is.Expiry()
	}
	if r.Met = r.Only == Always || (r.Only == IfPresent) == there; !r.Met {
		return is, false
	}
	n, added, err := r.Add(r.Value)
	if r.Err = err; !added {
		return is, false
	}
	r.Value, r.Added = n, n-r.Value
	if r.Expire != KeepExpiry && !(r.IfNone && expiryNS != NoExpiry) {
		expiryNS = r.expiryNS(wallNS)
	}
	return Integer(n, wallNS, expiryNS), true
}

// latestNS is the latest expiry that there is, a whole ms in 2262.
const latestNS = math.MaxInt64 / 1_000_000 * 1_000_000

func (c *Count) expiryNS(wallNS int64) int64 {
	switch c.Expire {
	case ExpireIn:
		wallNS -= wallNS % 1_000_000
		return wallNS + min(c.TimeNS, latestNS-wallNS)
	case ExpireAt:
		return c.TimeNS
	}
	return NoExpiry
}
