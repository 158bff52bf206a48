package store

import (
	"errors"
	"testing"

	"celld/cell"
)

// What INCR and INCREX make of what a key holds: whether anything is put, the integer, the expiry, and the answer.
func TestCountsDecide(t *testing.T) {
	const nowNS = 1_767_225_600_000_900_000 // 0.9 ms after a whole one
	plus := cell.Unbounded(2)
	strict := cell.Unbounded(2)
	strict.Strict = true
	upTo3 := cell.Counter{By: 2, Lower: 0, Upper: 3}
	none, count := Value{}, func(n, expiryNS int64) Value { return Value{Count: n, ExpiryNS: expiryNS} }
	at9 := Count{Counter: plus, Expire: ExpireAt, TimeNS: 9, IfNone: true}
	for name, test := range map[string]struct {
		count Count
		is    Value
		there bool
		next  Value // the zero Value: nothing is put
		value int64
		met   bool
		err   error
	}{
		"a new key":        {Count{Counter: plus}, none, false, count(2, NoExpiry), 2, true, nil},
		"a count":          {Count{Counter: plus}, count(5, NoExpiry), true, count(7, NoExpiry), 7, true, nil},
		"it keeps its end": {Count{Counter: plus}, count(5, nowNS+1), true, count(7, nowNS+1), 7, true, nil},
		"within a bound":   {Count{Counter: upTo3}, count(1, NoExpiry), true, count(3, NoExpiry), 3, true, nil},
		"at a bound":       {Count{Counter: upTo3, Expire: NeverExpire}, count(2, nowNS+1), true, none, 2, true, nil},
		"overflow":         {Count{Counter: strict}, count(cell.LargestCount, NoExpiry), true, none, cell.LargestCount, true, cell.ErrOverflow},
		"a new end":        {Count{Counter: plus, Expire: ExpireAt, TimeNS: 9}, count(5, NoExpiry), true, count(7, 9), 7, true, nil},
		"in whole ms": {Count{Counter: plus, Expire: ExpireIn, TimeNS: 5_000_000}, none, false,
			count(2, nowNS-900_000+5_000_000), 2, true, nil},
		"until 2262":        {Count{Counter: plus, Expire: ExpireIn, TimeNS: latestNS}, none, false, count(2, latestNS), 2, true, nil},
		"no end any longer": {Count{Counter: plus, Expire: NeverExpire}, count(5, nowNS+1), true, count(7, NoExpiry), 7, true, nil},
		"ENX, with an end":  {at9, count(5, nowNS+1), true, count(7, nowNS+1), 7, true, nil},
		"ENX, without":      {at9, count(5, NoExpiry), true, count(7, 9), 7, true, nil},
		"ENX, with a TAT": {at9, Value{TAT: nowNS + 5}, true,
			Value{TAT: nowNS + 7, ExpiryNS: nowNS - 900_000}, nowNS + 7, true, nil},
		"NX, a new key": {Count{Counter: plus, Only: IfAbsent}, none, false, count(2, NoExpiry), 2, true, nil},
		"NX, a count":   {Count{Counter: plus, Only: IfAbsent}, count(5, NoExpiry), true, none, 5, false, nil},
		"XX, a new key": {Count{Counter: plus, Only: IfPresent}, none, false, none, 0, false, nil},
		"XX, a count":   {Count{Counter: plus, Only: IfPresent}, count(5, NoExpiry), true, count(7, NoExpiry), 7, true, nil},
		"a TAT becomes less": {Count{Counter: cell.Unbounded(-9)}, Value{TAT: nowNS + 5, ExpiryNS: NoExpiry}, true,
			count(nowNS-4, NoExpiry), nowNS - 4, true, nil},
		"a TAT from 2^63 on": {Count{Counter: plus}, Value{TAT: 1 << 63, ExpiryNS: NoExpiry}, true, none, 0, false, ErrNotInteger},
		"limits":             {Count{Counter: plus}, Value{TAT: nowNS + 5, HoldsLimits: true}, true, none, 0, false, ErrWrongType},
	} {
		r := CountRequest{Count: test.count, Value: 99, Added: 99, Met: !test.met, Err: errors.New("of a request before")}
		next, put := r.Decide(test.is, test.there, nowNS)
		if put != (test.next != none) || put && next != test.next {
			t.Errorf("%s: puts %+v, %v; want %+v", name, next, put, test.next)
		}
		added, _ := test.is.Int64()
		if added = test.value - added; !put {
			added = 0
		}
		if r.Value != test.value || r.Added != added || r.Met != test.met || r.Err != test.err {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
