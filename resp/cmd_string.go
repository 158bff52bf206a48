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

// cmdGetRange is here because RedisInsight shows strings by it.
func cmdGetRange(s *Session, args [][]byte) {
	start, ok := parseInt(args[2])
	end, endOK := parseInt(args[3])
	if !ok || !endOK {
		s.replyError(errNotInteger)
		return
	}
	st, found := s.srv.store.Get(args[1], s.access())
	if found && st.Kind != store.HoldsTAT {
		s.replyError(errWrongType)
		return
	}
	text := ""
	if found {
		text = formatTAT(st.TAT)
	}
	length := int64(len(text))
	if start < 0 && end < 0 && start > end { // also where both are before the first
		s.replyString("")
		return
	}
	if start < 0 {
		start = max(0, start+length)
	}
	if end < 0 {
		end = max(0, end+length)
	}
	if end = min(end, length-1); start > end {
		s.replyString("")
		return
	}
	s.replyString(text[start : end+1])
}

// setOptions are what may follow SET key value.
type setOptions struct {
	nx, xx, get, keepTTL bool
	expiry               expiryOption
}

// expiryOption is the expiry that SET and GETEX may give a key.
type expiryOption struct {
	unit  string // ex, px, exat, pxat, or none
	value []byte
}

// atNS is when that is, or the text of an error.
func (o expiryOption) atNS(command string, nowNS int64) (atNS int64, text string) {
	n, ok := parseInt(o.value)
	if !ok {
		return 0, errNotInteger
	}
	if atNS, ok = expiryNS(n, o.unit, nowNS); !ok || n <= 0 {
		return 0, formatError(errInvalidExpire, command)
	}
	return max(atNS, 1), ""
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
			if o.expiry.unit != "" {
				return false
			}
			o.keepTTL = true
		case "ex", "px", "exat", "pxat":
			if o.keepTTL || o.expiry.unit != "" && o.expiry.unit != option || i+1 == len(args) {
				return false
			}
			i++
			o.expiry = expiryOption{option, args[i]}
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
	next := store.Value{ExpiryNS: store.NoExpiry}
	if o.expiry.unit != "" {
		var text string
		if next.ExpiryNS, text = o.expiry.atNS("set", s.wallNS()); text != "" {
			s.replyError("%s", text)
			return
		}
	}
	tat, ok := parseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	next.TAT = tat

	var old store.Value
	existed, stored, wrongType := false, false, false
	err := s.srv.store.Update(args[1], s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
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
func ownExpiry(st store.Value) int64 {
	if st.ExpiryNS == store.AtTAT {
		return int64(min(st.TAT, math.MaxInt64))
	}
	return st.ExpiryNS
}
