package resp

import (
	"errors"
	"math"
	"slices"
	"strings"

	"celld/resp/command"
	"celld/store"
)

// digits returns a key's TAT as GET shows it, "" where there is no key. It answers an error, and ok is false, where the key holds
// no TAT.
func (s *Session) digits(key []byte) (text string, ok bool) {
	st, found := s.store().Get(key, s.access())
	switch {
	case !found:
		return "", true
	case st.Kind != store.HoldsTAT:
		s.replyError(errWrongType)
		return "", false
	}
	return command.FormatTAT(st.TAT), true
}

func cmdGet(s *Session, args [][]byte) {
	switch text, ok := s.digits(args[1]); {
	case !ok:
	case text == "":
		s.replyNull()
	default:
		s.replyString(text)
	}
}

// cmdStrlen exists because redis-cli --bigkeys calls it for every string.
func cmdStrlen(s *Session, args [][]byte) {
	if text, ok := s.digits(args[1]); ok {
		s.replyInt(int64(len(text)))
	}
}

// cmdGetRange exists because RedisInsight shows strings by it.
func cmdGetRange(s *Session, args [][]byte) {
	start, ok := command.ParseInt(args[2])
	end, endOK := command.ParseInt(args[3])
	if !ok || !endOK {
		s.replyError(errNotInteger)
		return
	}
	text, ok := s.digits(args[1])
	if !ok {
		return
	}
	length := int64(len(text))
	if start < 0 && end < 0 && start > end { // Redis checks this before it adds the length
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

// setOptions are what may follow SET key value and GETEX key.
type setOptions struct {
	nx, xx, get, keepTTL bool // of SET
	persist              bool // of GETEX
	expiry               expiryOption
}

// expiryOption is the expiry that SET and GETEX may give a key.
type expiryOption struct {
	unit  string // one of expiryUnits; empty: none
	value []byte
}

// atNS returns the instant of the expiry, or the text of an error.
func (o expiryOption) atNS(name string, nowNS int64) (atNS int64, text string) {
	n, ok := command.ParseInt(o.value)
	if !ok {
		return 0, errNotInteger
	}
	if atNS, ok = expiryNS(n, o.unit, nowNS); !ok || n <= 0 {
		return 0, formatError(errInvalidExpire, name)
	}
	return max(atNS, 1), ""
}

// parse reads the options of SET or GETEX as Redis's parseExtendedStringArgumentsOrReply does.
func (o *setOptions) parse(args [][]byte, getEx bool) bool {
	for ; len(args) > 0; args = args[1:] {
		option, expires := strings.ToLower(string(args[0])), o.expiry.unit != ""
		switch {
		case option == "nx" && !getEx && !o.xx:
			o.nx = true
		case option == "xx" && !getEx && !o.nx:
			o.xx = true
		case option == "get" && !getEx:
			o.get = true
		case option == "keepttl" && !getEx && !expires:
			o.keepTTL = true
		case option == "persist" && getEx && !expires:
			o.persist = true
		case slices.Contains(expiryUnits, option) && !o.keepTTL && !o.persist && (!expires || o.expiry.unit == option) && len(args) > 1:
			o.expiry = expiryOption{option, args[1]}
			args = args[1:]
		default:
			return false
		}
	}
	return true
}

var expiryUnits = []string{"ex", "px", "exat", "pxat"}

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
	// Nanoseconds in int64 end in the year 2262. A later instant becomes that end.
	return max(min(ms, math.MaxInt64/1_000_000), 0) * 1e6, true
}

// cmdSet stores a TAT. Redis would store any bytes. celld refuses a value that is no TAT, and changes nothing.
func cmdSet(s *Session, args [][]byte) {
	var o setOptions
	if !o.parse(args[3:], false) {
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
	tat, ok := command.ParseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	next.TAT = tat

	var old store.Value
	existed, stored, wrongType := false, false, false
	err := s.store().Update(args[1], s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
		old, existed, stored = current, ok, false // the store calls this again after it has made room
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
		s.replyString(command.FormatTAT(old.TAT))
	case o.get || !stored:
		s.replyNull()
	default:
		s.replyOK()
	}
}

// ownExpiry returns a key's expiry as an instant, or NoExpiry. For a key that lives as long as its TAT, it returns the TAT.
func ownExpiry(st store.Value) int64 {
	if st.ExpiryNS == store.AtTAT {
		return int64(min(st.TAT, math.MaxInt64))
	}
	return st.ExpiryNS
}
