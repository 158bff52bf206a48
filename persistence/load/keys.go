package load

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"celld/persistence/aof"
	"celld/persistence/rdb"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// String takes a string: an integer, or what may have been one and now is none.
func (r *run) String(key, text []byte, expiryMS int64) error {
	st, ok := store.ParseInteger(text, r.nowNS)
	if !ok {
		r.Store.Delete(key, r.nowNS)
		r.Other(key, "string")
		return nil
	}
	if expiryMS < 0 && !st.IsCount() { // it would be a count for a later start
		r.result.Rewrite = r.AppendOnly
	}
	return r.set(key, rdb.WithExpiry(st, expiryMS))
}

func (r *run) Other(_ []byte, kind string) {
	if r.result.Others == nil {
		r.result.Others = map[string]int64{}
	}
	r.result.Others[kind]++
}

func (r *run) set(key []byte, st store.Value) error {
	if r.Stopped() {
		return ErrStopping
	}
	r.state = st
	if st.TAT <= uint64(r.nowNS) && (st.HoldsLimits || st.ExpiryNS == store.AtTAT) || st.ExpiryNS > 0 && st.ExpiryNS <= r.nowNS {
		r.result.Expired++
	}
	return r.full(r.Store.Update(key, store.Access{NowNS: r.nowNS}, r.put))
}

// full replaces store.ErrFull by an error that names the settings.
func (r *run) full(err error) error {
	if errors.Is(err, store.ErrFull) {
		return errors.New("there are more keys than --max-keys, --maxmemory and noeviction allow")
	}
	return err
}

// command runs a command of an append-only file. The kinds that celld writes run here, without the command table; all others
// go to apply.
func (r *run) command(args [][]byte) error {
	switch {
	case is(args, "SELECT") && len(args) == 2:
		db, err := strconv.Atoi(string(args[1]))
		if err != nil {
			return fmt.Errorf("SELECT %q", args[1])
		}
		r.db = db
	case is(args, "ECHO") && len(args) == 2:
		if name, rest, found := strings.Cut(string(args[1]), " "); found {
			r.Setting(name, rest)
		}
	case is(args, "FLUSHALL"): // with ASYNC or not
		r.Store.Flush()
	case r.db != 0:
		r.Other(nil, "database "+strconv.Itoa(r.db))
	default:
		return r.change(args)
	}
	return nil
}

// change runs a command on keys.
func (r *run) change(args [][]byte) error {
	switch n := len(args); {
	case is(args, "SET") && (n == 3 || n == 5 && strings.EqualFold(string(args[3]), "PXAT")):
		return r.setCommand(args)
	case is(args, "DEL") && n == 2:
		r.Store.Delete(args[1], r.nowNS)
	case (is(args, "HSET") || is(args, "HMSET")) && n >= 4 && n%2 == 0:
		return r.hashCommand(args)
	case is(args, "PEXPIREAT") && n == 3:
		return r.expireCommand(args)
	case is(args, "FLUSHDB"):
		r.Store.Flush()
	case r.apply(args) != nil:
		r.Other(nil, strings.ToUpper(string(args[0][:min(len(args[0]), 32)])))
	}
	return nil
}

// is reports whether a command has that name.
func is(args [][]byte, name string) bool {
	return len(args[0]) == len(name) && strings.EqualFold(string(args[0]), name)
}

func (r *run) setCommand(args [][]byte) error {
	at := int64(-1)
	if len(args) == 5 {
		var err error
		if at, err = strconv.ParseInt(string(args[4]), 10, 64); err != nil || at < 0 {
			r.Other(args[1], "SET")
			return nil
		}
	}
	return r.String(args[1], args[2], at)
}

// Setting takes a name and a text from a file, and reports whether they are a setting.
func (r *run) Setting(name, text string) bool {
	for kind, known := range rdb.SettingNames {
		if name != known {
			continue
		}
		text, name, _ := strings.Cut(text, " ")
		setting := policy.Setting{Kind: policy.Kind(kind), Name: name}
		r.settings[setting] = true
		if text == aof.SettingGone {
			r.Store.DeleteSetting(setting, r.nowNS)
		} else if err := r.Store.PutSetting(setting, text, r.nowNS); err != nil {
			r.Other(nil, known)
		}
		return true
	}
	return false
}

// Field takes one field of a hash. It skips a limit whose policy is gone, as nobody can ask for it.
func (r *run) Field(f *rdb.Fields, name, text []byte) {
	if f.Bad {
		return
	}
	field, err := r.Store.ParseField(string(name), string(text))
	switch {
	case errors.Is(err, policy.ErrNoPolicy): // a file that redis-server has rewritten has states but no policies
		r.Other(nil, "limit of an unknown policy")
	case err != nil:
		f.Bad = true
	default:
		field.EndBound(r.Store.WallNS(r.nowNS))
		f.Fields = append(f.Fields, field)
	}
}

// Hash takes the key of a hash after its fields.
func (r *run) Hash(key []byte, f *rdb.Fields, expiryMS int64) error {
	if r.Stopped() {
		return ErrStopping
	}
	limits, _, err := memory.Merge(f.Fields, nil, false, 0, 0)
	if f.Bad || err != nil {
		r.Other(key, "hash")
		return nil
	}
	if len(limits) == 0 {
		return nil
	}
	return r.set(key, rdb.WithExpiry(store.Value{HoldsLimits: true, Limits: &limits, TAT: limits.EndNS()}, expiryMS))
}

// hashCommand takes an HSET. In celld's files an HSET makes a key, or extends its logs. In Redis's it may change a part of a key.
func (r *run) hashCommand(args [][]byte) error {
	var f rdb.Fields
	for rest := args[2:]; len(rest) > 1; rest = rest[2:] {
		r.Field(&f, rest[0], rest[1])
	}
	st, ok := r.Store.Get(args[1], store.Access{NowNS: r.nowNS, NoTouch: true})
	switch {
	case f.Bad:
		r.Store.Delete(args[1], r.nowNS)
	case ok && st.HoldsLimits:
		_, err := r.Store.PutFields(args[1], f.Fields, false, store.Access{NowNS: r.nowNS})
		return r.full(err)
	}
	return r.Hash(args[1], &f, -1)
}

// expireCommand takes a PEXPIREAT.
func (r *run) expireCommand(args [][]byte) error {
	at, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil || at < 0 {
		r.Other(args[1], "PEXPIREAT")
		return nil
	}
	return r.Store.Update(args[1], store.Access{NowNS: r.nowNS, NoTouch: true}, func(st store.Value, ok bool) (store.Value, bool) {
		if !ok {
			return st, false
		}
		return rdb.WithExpiry(st, at), true
	})
}
