package resp

import (
	"errors"
	"strings"

	"celld/store"
)

// SETNX, GETSET, GETDEL and GETEX read and write a TAT in one step. As SET, they refuse a value that is no TAT.

func cmdSetNX(s *Session, args [][]byte) {
	tat, ok := parseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	stored := false
	err := s.srv.store.Update(args[1], s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
		if stored = !ok; ok {
			return current, store.Leave
		}
		return store.Value{TAT: tat, ExpiryNS: store.NoExpiry}, store.Put
	})
	if errors.Is(err, store.ErrFull) {
		s.replyError(errOOM)
		return
	}
	s.replyBool(stored)
}

func cmdGetSet(s *Session, args [][]byte) {
	tat, ok := parseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	s.exchange(args[1], func(store.Value) (store.Value, store.Action) {
		return store.Value{TAT: tat, ExpiryNS: store.NoExpiry}, store.Put
	}, true)
}

func cmdGetDel(s *Session, args [][]byte) {
	s.exchange(args[1], func(current store.Value) (store.Value, store.Action) { return current, store.Delete }, false)
}

// cmdGetEx looks at the expiry only where there is a TAT, as Redis does.
func cmdGetEx(s *Session, args [][]byte) {
	expiry, persist, ok := parseGetEx(args[2:])
	if !ok {
		s.replyError(errSyntax)
		return
	}
	atNS, text := store.NoExpiry, ""
	if expiry.unit != "" {
		atNS, text = expiry.atNS("getex", s.wallNS())
	}
	mark := len(s.out)
	found := s.exchange(args[1], func(current store.Value) (store.Value, store.Action) {
		if text != "" || expiry.unit == "" && (!persist || current.ExpiryNS == store.NoExpiry) {
			return current, store.Leave
		}
		current.ExpiryNS = atNS
		return current, store.Put
	}, false)
	if found && text != "" {
		s.out = s.out[:mark]
		s.replyError("%s", text)
	}
}

// parseGetEx reads GETEX's options as Redis's parseExtendedStringArgumentsOrReply does.
func parseGetEx(args [][]byte) (expiry expiryOption, persist, ok bool) {
	for i := 0; i < len(args); i++ {
		switch option := strings.ToLower(string(args[i])); option {
		case "persist":
			if expiry.unit != "" {
				return expiry, false, false
			}
			persist = true
		case "ex", "px", "exat", "pxat":
			if persist || expiry.unit != "" && expiry.unit != option || i+1 == len(args) {
				return expiry, false, false
			}
			i++
			expiry = expiryOption{option, args[i]}
		default:
			return expiry, false, false
		}
	}
	return expiry, persist, true
}

// exchange answers with a key's TAT, and does with the key what fn says of it. create has it ask fn for a key that is not there,
// too. It returns whether there was a TAT.
func (s *Session) exchange(key []byte, fn func(store.Value) (store.Value, store.Action), create bool) (found bool) {
	var old store.Value
	there := false
	err := s.srv.store.Update(key, s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
		old, there = current, ok
		if ok && current.Kind != store.HoldsTAT || !ok && !create {
			return current, store.Leave
		}
		return fn(current)
	})
	switch {
	case errors.Is(err, store.ErrFull):
		s.replyError(errOOM)
	case !there:
		s.replyNull()
	case old.Kind != store.HoldsTAT:
		s.replyError(errWrongType)
	default:
		s.replyString(formatTAT(old.TAT))
		return true
	}
	return false
}
