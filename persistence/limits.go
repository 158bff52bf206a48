package persistence

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"celld/cell"
	"celld/resp/wire"
	"celld/store"
	"celld/store/policy"
)

// A key that holds limits is a hash in the files: of their names to their states, as cell.Limit.AppendState writes them.
// What celld keeps beside its keys, policies and rules, is no key: it stands in auxiliary fields of a snapshot, and in the
// append-only file in ECHOs. Redis passes over both.

var (
	wordHSet      = []byte("HSET")
	wordHMSet     = []byte("HMSET")
	wordPExpireAt = []byte("PEXPIREAT")
)

// appendHash writes the commands that lead to a key with these limits, as a transaction, so that no cut leaves it without
// any. What the key was before may be of another kind, so it goes first; but not where it has logs that have been told of
// before, of which only what is new follows.
func appendHash(b, key []byte, st store.Value) []byte {
	limits := *st.Limits
	if len(limits) == 0 { // of policies that are gone
		return wire.AppendCommand(b, wordDel, key)
	}
	b = wire.AppendCommand(b, wordMulti)
	if !slices.ContainsFunc(limits, func(l store.LimitState) bool { return l.Told.Known() }) {
		b = wire.AppendCommand(b, wordDel, key)
	}
	fields, count := []byte(nil), 0
	var name, text []byte
	for i := range limits {
		l := &limits[i]
		name = l.AppendName(name[:0])
		field := func(name, text []byte) {
			fields = wire.AppendBulks(fields, name, text)
			count++
		}
		if l.Limit.Algo != cell.Log {
			text = l.Limit.AppendState(text[:0], &l.State)
			field(name, text)
			continue
		}
		for part := range l.Limit.Parts(&l.State, l.Told) {
			if !part.Whole {
				name = strconv.AppendUint(append(l.AppendName(name[:0]), ' '), uint64(part.Number), 10)
			}
			text = l.Limit.AppendPart(text[:0], &l.State, part)
			field(name, text)
		}
	}
	b = wire.AppendBulks(wire.AppendArray(b, 2+2*count), wordHSet, key)
	b = append(b, fields...)
	if at := expiryMS(st); at >= 0 {
		b = wire.AppendCommand(b, wordPExpireAt, key, strconv.AppendInt(nil, at, 10))
	}
	return wire.AppendCommand(b, wordExec)
}

// hash adds a key with limits.
func (f *rdbWriter) hash(key []byte, limits store.Limits) {
	f.buf = append(f.buf, typeHash)
	f.buf = appendString(f.buf, key)
	f.buf = appendLength(f.buf, uint64(len(limits)))
	var text []byte
	for i := range limits {
		l := &limits[i]
		text = l.AppendName(text[:0])
		f.buf = appendString(f.buf, text)
		text = l.Limit.AppendState(text[:0], &l.State)
		f.buf = appendString(f.buf, text)
	}
}

// settingNames are what a setting is called in the files.
var settingNames = [policy.SettingKinds]string{policy.PolicySetting: "celld-policy", policy.RuleSetting: "celld-rule"}

// settingGone stands for the text of a setting that is no more.
const settingGone = "-"

// eachSetting calls fn with all of them, and what a file has of each: its text, and behind a space its name.
func (d *Disk) eachSetting(fn func(setting policy.Setting, text string)) {
	for kind := range policy.SettingKinds {
		for _, name := range d.store.Settings(kind) {
			setting := policy.Setting{Kind: kind, Name: name}
			if text, ok := d.store.SettingText(setting); ok {
				fn(setting, text+" "+name)
			}
		}
	}
}

func appendSetting(b []byte, setting policy.Setting, text string) []byte {
	return wire.AppendCommand(b, "ECHO", settingNames[setting.Kind]+" "+text)
}

// appendSettingChange writes what became of a setting. One that was renewed is removed first, and so forgets what was used
// under it.
func (d *Disk) appendSettingChange(b []byte, c policy.Change) []byte {
	text, ok := d.store.SettingText(c.Setting)
	if c.Renewed || !ok {
		b = appendSetting(b, c.Setting, settingGone+" "+c.Name)
	}
	if ok {
		b = appendSetting(b, c.Setting, text+" "+c.Name)
	}
	return b
}

// setting takes one of a file: what it is called, and its text. It reports whether it is one.
func (l *loader) setting(name, text string) bool {
	for kind, known := range settingNames {
		if name != known {
			continue
		}
		text, name, _ := strings.Cut(text, " ")
		setting := policy.Setting{Kind: policy.Kind(kind), Name: name}
		if text == settingGone {
			l.disk.store.DeleteSetting(setting, l.nowNS)
		} else if err := l.disk.store.PutSetting(setting, text, l.nowNS); err != nil {
			l.other(nil, known)
		}
		return true
	}
	return false
}

// echo takes the text of an ECHO that is no stamp.
func (l *loader) echo(text []byte) {
	if name, rest, found := strings.Cut(string(text), " "); found {
		l.setting(name, rest)
	}
}

// fields are those of a hash that is being read.
type fields struct {
	store.Fields
	bad bool // it has some that are no limits
}

// field takes a field. One of a policy that is gone is passed over, as nobody can ask for it.
func (l *loader) field(f *fields, name, text []byte) {
	if f.bad {
		return
	}
	field, err := l.disk.store.ParseField(string(name), string(text))
	switch {
	case errors.Is(err, store.ErrNoPolicy): // redis-server passes over policies, and keeps their states
		l.other(nil, "limit of an unknown policy")
	case err != nil:
		f.bad = true
	default:
		f.Fields = append(f.Fields, field)
	}
}

// hash takes a key that is a hash.
func (l *loader) hash(key []byte, f *fields, expiryMS int64) error {
	if l.disk.stopping.Load() {
		return ErrStopping
	}
	limits, _, err := f.Join(nil, false, 0, 0)
	if f.bad || err != nil {
		l.other(key, "hash")
		return nil
	}
	if len(limits) == 0 {
		return nil
	}
	st := stateOf(limits.EndNS(), expiryMS)
	st.Kind, st.Limits = store.HoldsLimits, &limits
	return l.set(key, st)
}

// hashCommand takes an HSET. Those of our files make a key anew, or tell what is new of its logs; one of Redis's may change a
// part of it.
func (l *loader) hashCommand(args [][]byte) error {
	var f fields
	for rest := args[2:]; len(rest) > 1; rest = rest[2:] {
		l.field(&f, rest[0], rest[1])
	}
	st, ok := l.disk.store.Get(args[1], store.Access{NowNS: l.nowNS, NoTouch: true})
	switch {
	case f.bad:
		l.disk.store.Delete(args[1], l.nowNS)
	case ok && st.Kind == store.HoldsLimits:
		_, err := l.disk.store.PutFields(args[1], f.Fields, false, store.Access{NowNS: l.nowNS})
		return l.full(err)
	}
	return l.hash(args[1], &f, -1)
}

// expireCommand takes a PEXPIREAT. That of a key that lives as long as what it holds says nothing.
func (l *loader) expireCommand(args [][]byte) error {
	at, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil || at < 0 {
		l.other(args[1], "PEXPIREAT")
		return nil
	}
	return l.disk.store.Update(args[1], store.Access{NowNS: l.nowNS, NoTouch: true}, func(st store.Value, ok bool) (store.Value, store.Action) {
		if !ok {
			return st, store.Leave
		}
		st.ExpiryNS = stateOf(st.TAT, at).ExpiryNS
		return st, store.Put
	})
}

// isHash tells the commands of the append-only file that make one.
func isHash(args [][]byte) bool {
	return len(args) >= 4 && len(args)%2 == 0 && (bytes.EqualFold(args[0], wordHSet) || bytes.EqualFold(args[0], wordHMSet))
}
