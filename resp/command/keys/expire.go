package keys

import (
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
	if at := st.Expiry(); at == store.NoExpiry {
		c.Int(-1)
	} else {
		c.Int(in(at / 1e6))
	}
}

// unseen looks at a key without marking it as used.
func unseen(c *command.Call) store.Access { return store.Access{NowNS: c.NowNS, NoTouch: true} }

func expire(c *command.Call)    { expireBy(c, "EX") }
func pexpire(c *command.Call)   { expireBy(c, "PX") }
func expireAt(c *command.Call)  { expireBy(c, "EXAT") }
func pexpireAt(c *command.Call) { expireBy(c, "PXAT") }

var expireOptions = argument.Options{Flags: []string{"NX", "XX", "GT", "LT"}, Refusal: errExpireOption}

// expireConditions are the options of EXPIRE. It changes the expiry only if there is none (NX), if there is one (XX), if the new
// one is later (GT), or if it is earlier (LT). No expiry counts as later than any.
type expireConditions struct{ nx, xx, gt, lt bool }

// parse returns the text of an error, or "". As in Redis, a word that is no option comes before two that exclude each other.
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
	atNS, ok := argument.InstantNS(n, unit, wallNS)
	if !ok {
		c.Error(argument.ErrInvalidExpire, strings.ToLower(string(c.Args[0])))
		return
	}
	c.Bool(change(c, func(current store.Value) (store.Value, bool) {
		if !conditions.allow(current.Expiry(), atNS) {
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
