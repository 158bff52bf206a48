package persistence

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"celld/resp/wire"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// A key that holds limits is a hash in the files. Each field is the name of a limit; its value is the state, as
// cell.Limit.AppendState writes it. Policies and rules are no keys. A snapshot holds them in auxiliary fields, the append-only
// file in ECHO commands. Redis ignores both.

var (
	wordHSet      = []byte("HSET")
	wordHMSet     = []byte("HMSET")
	wordPExpireAt = []byte("PEXPIREAT")
)

// appendHash writes the commands that make a key with these limits. They are a transaction, so that a file that is cut off has
// all of them or none. The key may have been of another kind, so DEL comes first. A log that the file already has is only
// extended, so then there is no DEL.
func appendHash(b, key []byte, st store.Value) []byte {
	limits := *st.Limits
	if len(limits) == 0 { // their policies are gone
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
		if !l.Limit.KeepsCalls() {
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

// settingNames are the names of settings in the files.
var settingNames = [policy.SettingKinds]string{policy.PolicySetting: "celld-policy", policy.RuleSetting: "celld-rule", policy.IDSetting: "celld-lease"}

// settingGone replaces the text of a setting that was removed.
const settingGone = "-"

// eachSetting calls fn with each setting and its form in a file: its text, a space and its name.
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

// appendSettingChange writes the new form of a setting. A renewed setting is removed first, so that its old states are
// forgotten.
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

// setting takes a name and a text from a file, and reports whether they are a setting.
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

// echo takes the text of an ECHO, which may be a setting.
func (l *loader) echo(text []byte) {
	if name, rest, found := strings.Cut(string(text), " "); found {
		l.setting(name, rest)
	}
}

// fields are the fields of a hash that is being read.
type fields struct {
	store.Fields
	bad bool // the hash has a field that is no limit
}

// field takes one field of a hash. It skips a limit whose policy is gone, as nobody can ask for that.
func (l *loader) field(f *fields, name, text []byte) {
	if f.bad {
		return
	}
	field, err := l.disk.store.ParseField(string(name), string(text))
	switch {
	case errors.Is(err, store.ErrNoPolicy): // a file that redis-server has rewritten has states but no policies
		l.other(nil, "limit of an unknown policy")
	case err != nil:
		f.bad = true
	default:
		f.Fields = append(f.Fields, field)
	}
}

// hash takes the key of a hash after its fields.
func (l *loader) hash(key []byte, f *fields, expiryMS int64) error {
	if l.disk.stopping.Load() {
		return ErrStopping
	}
	limits, _, err := memory.Join(f.Fields, nil, false, 0, 0)
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

// hashCommand takes an HSET. In celld's files it makes a key, or extends its logs. In Redis's it may change a part of a key.
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

// expireCommand takes a PEXPIREAT.
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

// isHash says whether a command makes or changes a hash.
func isHash(args [][]byte) bool {
	return len(args) >= 4 && len(args)%2 == 0 && (bytes.EqualFold(args[0], wordHSet) || bytes.EqualFold(args[0], wordHMSet))
}
