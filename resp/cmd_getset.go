package resp

import (
	"errors"

	"celld/resp/command"
	"celld/store"
)

// SETNX, GETSET, GETDEL and GETEX read and write a TAT in one step. Like SET, they refuse a value that is no TAT.

func cmdSetNX(s *Session, args [][]byte) {
	tat, ok := command.ParseTAT(args[2])
	if !ok {
		s.replyError(errNotInteger)
		return
	}
	stored := false
	err := s.store().Update(args[1], s.access(), func(current store.Value, ok bool) (store.Value, store.Action) {
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
	cmdSet(s, [][]byte{args[0], args[1], args[2], []byte("get")})
}

func cmdGetDel(s *Session, args [][]byte) {
	s.exchange(args[1], func(current store.Value) (store.Value, store.Action) { return current, store.Delete })
}

// cmdGetEx reports a wrong expiry only if the key holds a TAT, as Redis does.
func cmdGetEx(s *Session, args [][]byte) {
	var o setOptions
	if !o.parse(args[2:], true) {
		s.replyError(errSyntax)
		return
	}
	atNS, text := store.NoExpiry, ""
	if o.expiry.unit != "" {
		atNS, text = o.expiry.atNS("getex", s.wallNS())
	}
	mark := len(s.call.Out)
	found := s.exchange(args[1], func(current store.Value) (store.Value, store.Action) {
		if text != "" || o.expiry.unit == "" && (!o.persist || current.ExpiryNS == store.NoExpiry) {
			return current, store.Leave
		}
		current.ExpiryNS = atNS
		return current, store.Put
	})
	if found && text != "" {
		s.call.Out = s.call.Out[:mark]
		s.replyError("%s", text)
	}
}

// exchange answers with a key's TAT, and applies fn to the key. It returns whether the key held a TAT.
func (s *Session) exchange(key []byte, fn func(store.Value) (store.Value, store.Action)) (found bool) {
	var old store.Value
	there := false
	s.change(key, func(current store.Value) (store.Value, store.Action) {
		old, there = current, true
		if current.Kind != store.HoldsTAT {
			return current, store.Leave
		}
		return fn(current)
	})
	switch {
	case !there:
		s.replyNull()
	case old.Kind != store.HoldsTAT:
		s.replyError(errWrongType)
	default:
		s.replyString(command.FormatTAT(old.TAT))
		return true
	}
	return false
}
