package persistence

import (
	"errors"
	"strconv"
	"strings"

	"celld/persistence/aof"
	"celld/persistence/rdb"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// Setting takes a name and a text from a file, and reports whether they are a setting.
func (l *loader) Setting(name, text string) bool {
	for kind, known := range rdb.SettingNames {
		if name != known {
			continue
		}
		text, name, _ := strings.Cut(text, " ")
		setting := policy.Setting{Kind: policy.Kind(kind), Name: name}
		if text == aof.SettingGone {
			l.disk.store.DeleteSetting(setting, l.nowNS)
		} else if err := l.disk.store.PutSetting(setting, text, l.nowNS); err != nil {
			l.Other(nil, known)
		}
		return true
	}
	return false
}

// echo takes the text of an ECHO, which may be a setting.
func (l *loader) echo(text []byte) {
	if name, rest, found := strings.Cut(string(text), " "); found {
		l.Setting(name, rest)
	}
}

// Field takes one field of a hash. It skips a limit whose policy is gone, as nobody can ask for that.
func (l *loader) Field(f *rdb.Fields, name, text []byte) {
	if f.Bad {
		return
	}
	field, err := l.disk.store.ParseField(string(name), string(text))
	switch {
	case errors.Is(err, store.ErrNoPolicy): // a file that redis-server has rewritten has states but no policies
		l.Other(nil, "limit of an unknown policy")
	case err != nil:
		f.Bad = true
	default:
		f.Fields = append(f.Fields, field)
	}
}

// Hash takes the key of a hash after its fields.
func (l *loader) Hash(key []byte, f *rdb.Fields, expiryMS int64) error {
	if l.disk.stopping.Load() {
		return ErrStopping
	}
	limits, _, err := memory.Join(f.Fields, nil, false, 0, 0)
	if f.Bad || err != nil {
		l.Other(key, "hash")
		return nil
	}
	if len(limits) == 0 {
		return nil
	}
	st := rdb.StateOf(limits.EndNS(), expiryMS)
	st.Kind, st.Limits = store.HoldsLimits, &limits
	return l.set(key, st)
}

// hashCommand takes an HSET. In celld's files it makes a key, or extends its logs. In Redis's it may change a part of a key.
func (l *loader) hashCommand(args [][]byte) error {
	var f rdb.Fields
	for rest := args[2:]; len(rest) > 1; rest = rest[2:] {
		l.Field(&f, rest[0], rest[1])
	}
	st, ok := l.disk.store.Get(args[1], store.Access{NowNS: l.nowNS, NoTouch: true})
	switch {
	case f.Bad:
		l.disk.store.Delete(args[1], l.nowNS)
	case ok && st.Kind == store.HoldsLimits:
		_, err := l.disk.store.PutFields(args[1], f.Fields, false, store.Access{NowNS: l.nowNS})
		return l.full(err)
	}
	return l.Hash(args[1], &f, -1)
}

// expireCommand takes a PEXPIREAT.
func (l *loader) expireCommand(args [][]byte) error {
	at, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil || at < 0 {
		l.Other(args[1], "PEXPIREAT")
		return nil
	}
	return l.disk.store.Update(args[1], store.Access{NowNS: l.nowNS, NoTouch: true}, func(st store.Value, ok bool) (store.Value, store.Action) {
		if !ok {
			return st, store.Leave
		}
		st.ExpiryNS = rdb.StateOf(st.TAT, at).ExpiryNS
		return st, store.Put
	})
}

// isHash reports whether a command makes or changes a hash.
func isHash(name string, args [][]byte) bool {
	return (name == "HSET" || name == "HMSET") && len(args) >= 4 && len(args)%2 == 0
}
