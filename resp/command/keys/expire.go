package keys

import (
	"fmt"
	"math"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
)

// A key expires when EXPIRE, PERSIST or SET says. Without these, it expires at its TAT.

func ttl(c *command.Call) {
	replyExpiry(c, func(ms int64) int64 { return (max(0, ms-c.WallNS()/1e6) + 500) / 1000 })
}
func pttl(c *command.Call) {
	replyExpiry(c, func(ms int64) int64 { return max(0, ms-c.WallNS()/1e6) })
}
func expireTime(c *command.Call)  { replyExpiry(c, func(ms int64) int64 { return (ms + 500) / 1000 }) }
func pexpireTime(c *command.Call) { replyExpiry(c, func(ms int64) int64 { return ms }) }

// replyExpiry answers with a key's expiry, which in converts from Unix ms. The answer is -1 for no expiry and -2 for no key.
func replyExpiry(c *command.Call, in func(ms int64) int64) {
	st, ok := c.Keys().Get(c.Args[1], unseen(c))
	if !ok {
		c.Int(-2)
		return
	}
	if at := ownExpiry(st); at == store.NoExpiry {
		c.Int(-1)
	} else {
		c.Int(in(at / 1e6))
	}
}

// unseen looks at a key without marking it as used.
func unseen(c *command.Call) store.Access { return store.Access{NowNS: c.NowNS, NoTouch: true} }

// ownExpiry returns a key's expiry as an instant, or NoExpiry. For a key that lives as long as its TAT, it returns the TAT.
func ownExpiry(st store.Value) int64 {
	if st.ExpiryNS == store.AtTAT {
		return int64(min(st.TAT, math.MaxInt64))
	}
	return st.ExpiryNS
}

// expiryOption is the expiry that SET and GETEX may give a key.
type expiryOption struct {
	unit  string // EX, PX, EXAT or PXAT; empty: none
	value []byte
}

// atNS returns the instant of the expiry, or the text of an error.
func (o expiryOption) atNS(name string, nowNS int64) (atNS int64, text string) {
	n, ok := argument.ParseInt(o.value)
	if !ok {
		return 0, argument.ErrNotInteger
	}
	if atNS, ok = expiryNS(n, o.unit, nowNS); !ok || n <= 0 {
		return 0, fmt.Sprintf(argument.ErrInvalidExpire, name)
	}
	return max(atNS, 1), ""
}

// expiryNS turns an expiry in the unit of a command into an instant, or returns false where Redis calls it invalid.
func expiryNS(n int64, unit string, nowNS int64) (int64, bool) {
	ms := n
	if unit == "EX" || unit == "EXAT" {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		ms = n * 1000
	}
	if unit == "EX" || unit == "PX" {
		if ms > math.MaxInt64-nowNS/1e6 {
			return 0, false
		}
		ms += nowNS / 1e6
	}
	// Nanoseconds in int64 end in the year 2262. A later instant becomes that end.
	return max(min(ms, math.MaxInt64/1_000_000), 0) * 1e6, true
}

func expire(c *command.Call)    { expireBy(c, "EX") }
func pexpire(c *command.Call)   { expireBy(c, "PX") }
func expireAt(c *command.Call)  { expireBy(c, "EXAT") }
func pexpireAt(c *command.Call) { expireBy(c, "PXAT") }

var expireOptions = argument.Options{Flags: []string{"NX", "XX", "GT", "LT"}, Refusal: errExpireOption}

// expireConditions are the options of EXPIRE. It changes the expiry only if there is none (NX), if there is one (XX), if the new
// one is later (GT), or if it is earlier (LT). No expiry counts as later than any.
type expireConditions struct{ nx, xx, gt, lt bool }

// parse returns the text of an error, or "".
func (o *expireConditions) parse(args [][]byte) string {
	text := expireOptions.Read(args, func(option string, _ []byte) string {
		switch option {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GT":
			o.gt = true
		case "LT":
			o.lt = true
		}
		return ""
	})
	switch {
	case text != "":
		return text
	case o.nx && (o.xx || o.gt || o.lt):
		return errExpireNX
	case o.gt && o.lt:
		return errExpireGTLT
	}
	return ""
}

func (o *expireConditions) allow(currentNS, atNS int64) bool {
	none := currentNS == store.NoExpiry
	switch {
	case o.nx && !none, o.xx && none:
		return false
	case o.gt && (none || atNS <= currentNS):
		return false
	case o.lt && !none && atNS >= currentNS:
		return false
	}
	return true
}

func expireBy(c *command.Call, unit string) {
	var conditions expireConditions
	if text := conditions.parse(c.Args[3:]); text != "" {
		c.Error("%s", text)
		return
	}
	n, ok := argument.ParseInt(c.Args[2])
	if !ok {
		c.Error(argument.ErrNotInteger)
		return
	}
	wallNS := c.WallNS()
	atNS, ok := expiryNS(n, unit, wallNS)
	if !ok {
		c.Error(argument.ErrInvalidExpire, strings.ToLower(string(c.Args[0])))
		return
	}
	c.Bool(change(c, func(current store.Value) (store.Value, bool) {
		if !conditions.allow(ownExpiry(current), atNS) {
			return current, false
		}
		if atNS <= wallNS {
			return store.Value{}, true // deletes the key
		}
		current.ExpiryNS = atNS
		return current, true
	}))
}

func persist(c *command.Call) {
	c.Bool(change(c, func(current store.Value) (store.Value, bool) {
		if current.ExpiryNS == store.NoExpiry {
			return current, false
		}
		current.ExpiryNS = store.NoExpiry
		return current, true
	}))
}

// change updates the key by fn if it exists, and says whether fn changed it. An existing key needs no room, so the store never refuses.
func change(c *command.Call, fn func(store.Value) (store.Value, bool)) bool {
	changed := false
	_ = c.Keys().Update(c.Args[1], c.Access(), func(current store.Value, ok bool) (store.Value, bool) {
		if !ok {
			return current, false
		}
		var next store.Value
		next, changed = fn(current)
		return next, changed
	})
	return changed
}
