package resp

import (
	"errors"
	"math"
	"strings"

	"celld/store"
)

func cmdGet(s *Session, args [][]byte) {
	st, ok := s.srv.store.Get(args[1], s.access())
	switch {
	case !ok:
		s.replyNull()
	case st.Kind != store.HoldsTAT:
		s.replyError(errWrongType)
	default:
		s.replyString(formatTAT(st.TAT))
	}
}

// cmdStrlen is here because redis-cli --bigkeys asks it of every string.
func cmdStrlen(s *Session, args [][]byte) {
	st, ok := s.srv.store.Get(args[1], s.access())
	switch {
	case !ok:
		s.replyInt(0)
	case st.Kind != store.HoldsTAT:
		s.replyError(errWrongType)
	default:
		s.replyInt(int64(len(formatTAT(st.TAT))))
	}
}

// setOptions are what may follow SET key value.
type setOptions struct {
	nx, xx, get, keepTTL bool
	unit                 string // of the expiry: ex, px, exat, pxat, or none
	expiry               []byte
}

// parse reads the options as Redis's parseExtendedStringArgumentsOrReply does.
func (o *setOptions) parse(args [][]byte) bool {
	for i := 0; i < len(args); i++ {
		option := strings.ToLower(string(args[i]))
		switch option {
		case "nx":
			if o.xx {
				return false
			}
			o.nx = true
		case "xx":
			if o.nx {
				return false
			}
			o.xx = true
		case "get":
			o.get = true
		case "keepttl":
			if o.unit != "" {
				return false
			}
			o.keepTTL = true
		case "ex", "px", "exat", "pxat":
			if o.keepTTL || o.unit != "" && o.unit != option || i+1 == len(args) {
				return false
			}
			i++
			o.unit, o.expiry = option, args[i]
		default:
			return false
		}
	}
	return true
}

// expiryNS turns an expiry in the unit of a command into an instant, or returns false where Redis calls it invalid.
func expiryNS(n int64, unit string, nowNS int64) (int64, bool) {
	ms := n
	if unit == "ex" || unit == "exat" {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		ms = n * 1000
	}
	if unit == "ex" || unit == "px" {
		if ms > math.MaxInt64-nowNS/1e6 {
			return 0, false
		}
		ms += nowNS / 1e6
	}
	// An instant past what nanoseconds in int64 hold, the year 2262, is held at that.
	return max(min(ms, math.MaxInt64/1_000_000), 0) * 1e6, true
}

// cmdSet stores a TAT. Redis would take any bytes; here a value that is no TAT is refused, and nothing changes.
func cmdSet(s *Session, args [][]byte) {
	var o setOptions
	if !o.parse(args[3:]) {
		s.replyError(errSyntax)
		return
	}
	next := store.State{ExpiryNS: store.NoExpiry}
	if o.unit != "" {
		n, ok := parseInt(o.expiry)
		if !ok {
			s.replyError(errNotInteger)
			return
		}
		if n <= 0 {
			s.replyError(errInvalidExpire, "set")
			return
		}
		if next.ExpiryNS, ok = expiryNS(n, o.unit, s.wallNS()); !ok {
			s.replyError(errInvalidExpire, "set")
			return
		}
		next.ExpiryNS = max(next.ExpiryNS, 1)
	}
	tat, ok := parseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	next.TAT = tat

	var old store.State
	existed, stored, wrongType := false, false, false
	err := s.srv.store.Update(args[1], s.access(), func(current store.State, ok bool) (store.State, store.Action) {
		old, existed, stored = current, ok, false // asked anew where the store had to look for room
		wrongType = o.get && ok && current.Kind != store.HoldsTAT
		if o.nx && ok || o.xx && !ok || wrongType {
			return current, store.Leave
		}
		if o.keepTTL && ok {
			next.ExpiryNS = ownExpiry(current)
		}
		stored = true
		return next, store.Put
	})
	switch {
	case errors.Is(err, store.ErrFull):
		s.replyError(errOOM)
	case wrongType:
		s.replyError(errWrongType)
	case o.get && existed:
		s.replyString(formatTAT(old.TAT))
	case o.get || !stored:
		s.replyNull()
	default:
		s.replyOK()
	}
}

// ownExpiry is a key's expiry as an instant or NoExpiry: one that lives as long as its TAT expires at its TAT.
func ownExpiry(st store.State) int64 {
	if st.ExpiryNS == store.AtTAT {
		return int64(min(st.TAT, math.MaxInt64))
	}
	return st.ExpiryNS
}
