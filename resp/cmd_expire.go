package resp

import (
	"strings"

	"celld/resp/command"
	"celld/store"
)

// A key expires when EXPIRE, PERSIST or SET has said. Without these, it expires at its TAT.

func cmdTTL(s *Session, args [][]byte) {
	s.replyExpiry(args[1], func(ms int64) int64 { return (max(0, ms-s.wallNS()/1e6) + 500) / 1000 })
}
func cmdPTTL(s *Session, args [][]byte) {
	s.replyExpiry(args[1], func(ms int64) int64 { return max(0, ms-s.wallNS()/1e6) })
}
func cmdExpireTime(s *Session, args [][]byte) {
	s.replyExpiry(args[1], func(ms int64) int64 { return (ms + 500) / 1000 })
}
func cmdPExpireTime(s *Session, args [][]byte) {
	s.replyExpiry(args[1], func(ms int64) int64 { return ms })
}

// replyExpiry answers with a key's expiry, which in converts from Unix ms. The answer is -1 for no expiry and -2 for no key.
func (s *Session) replyExpiry(key []byte, in func(ms int64) int64) {
	st, ok := s.store().Get(key, store.Access{NowNS: s.nowNS, NoTouch: true})
	if !ok {
		s.replyInt(-2)
		return
	}
	if at := ownExpiry(st); at == store.NoExpiry {
		s.replyInt(-1)
	} else {
		s.replyInt(in(at / 1e6))
	}
}

func cmdExpire(s *Session, args [][]byte)    { s.expire(args, "ex") }
func cmdPExpire(s *Session, args [][]byte)   { s.expire(args, "px") }
func cmdExpireAt(s *Session, args [][]byte)  { s.expire(args, "exat") }
func cmdPExpireAt(s *Session, args [][]byte) { s.expire(args, "pxat") }

// expireConditions are the options of EXPIRE. It changes the expiry only if there is none (NX), if there is one (XX), if the new
// one is later (GT), or if it is earlier (LT). No expiry counts as later than any.
type expireConditions struct{ nx, xx, gt, lt bool }

// parse returns the text of an error, or "".
func (c *expireConditions) parse(args [][]byte) string {
	for _, arg := range args {
		switch strings.ToLower(string(arg)) {
		case "nx":
			c.nx = true
		case "xx":
			c.xx = true
		case "gt":
			c.gt = true
		case "lt":
			c.lt = true
		default:
			return formatError(errExpireOption, arg)
		}
	}
	if c.nx && (c.xx || c.gt || c.lt) {
		return errExpireNX
	}
	if c.gt && c.lt {
		return errExpireGTLT
	}
	return ""
}

func (c *expireConditions) allow(currentNS, atNS int64) bool {
	none := currentNS == store.NoExpiry
	switch {
	case c.nx && !none, c.xx && none:
		return false
	case c.gt && (none || atNS <= currentNS):
		return false
	case c.lt && !none && atNS >= currentNS:
		return false
	}
	return true
}

func (s *Session) expire(args [][]byte, unit string) {
	var conditions expireConditions
	if text := conditions.parse(args[3:]); text != "" {
		s.replyError("%s", text)
		return
	}
	n, ok := command.ParseInt(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	atNS, ok := expiryNS(n, unit, s.wallNS())
	if !ok {
		s.replyError(errInvalidExpire, strings.ToLower(string(args[0])))
		return
	}
	s.replyBool(s.change(args[1], func(current store.Value) (store.Value, store.Action) {
		if !conditions.allow(ownExpiry(current), atNS) {
			return current, store.Leave
		}
		if atNS <= s.wallNS() {
			return current, store.Delete
		}
		current.ExpiryNS = atNS
		return current, store.Put
	}))
}

func cmdPersist(s *Session, args [][]byte) {
	s.replyBool(s.change(args[1], func(current store.Value) (store.Value, store.Action) {
		if current.ExpiryNS == store.NoExpiry {
			return current, store.Leave
		}
		current.ExpiryNS = store.NoExpiry
		return current, store.Put
	}))
}

// change applies fn to an existing key, and says whether fn changed it. An existing key needs no room, so the store never refuses.
func (s *Session) change(key []byte, fn func(store.Value) (store.Value, store.Action)) bool {
	changed := false
	_ = s.store().Update(key, s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
		if !ok {
			return current, store.Leave
		}
		next, action := fn(current)
		changed = action != store.Leave
		return next, action
	})
	return changed
}
