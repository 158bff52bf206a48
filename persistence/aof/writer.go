package aof

import (
	"slices"
	"strconv"

	"celld/persistence/rdb"
	"celld/resp/wire"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

var (
	wordDel       = []byte("DEL")
	wordEcho      = []byte("ECHO")
	wordHSet      = []byte("HSET")
	wordPExpireAt = []byte("PEXPIREAT")
)

// appendSet writes the command that makes a state: SET key integer [PXAT ms]. Nearly every change is one, so the constant parts
// are copied as they are: 70 ns a change, against 150 ns with wire.AppendCommand.
func appendSet(b, key []byte, st store.Value) []byte {
	at := rdb.ExpiryMS(st)
	if at < 0 {
		b = append(b, "*3\r\n$3\r\nSET\r\n"...)
	} else {
		b = append(b, "*5\r\n$3\r\nSET\r\n"...)
	}
	b = wire.AppendBulk(b, key)
	var digits [20]byte
	b = wire.AppendBulk(b, st.AppendInteger(digits[:0]))
	if at >= 0 {
		b = append(b, "$4\r\nPXAT\r\n"...)
		b = wire.AppendBulk(b, strconv.AppendInt(digits[:0], at, 10))
	}
	return b
}

// AppendChange writes the command that makes a change.
func AppendChange(b []byte, c memory.Change) []byte {
	switch {
	case c.Flush:
		return wire.AppendCommand(b, "FLUSHALL")
	case c.Lost:
		return b
	case c.Deleted:
		return wire.AppendCommand(b, wordDel, c.Key)
	}
	return AppendState(b, c.Key, c.State)
}

// AppendState writes the commands that make a state.
func AppendState(b, key []byte, st store.Value) []byte {
	if st.HoldsLimits {
		return appendHash(b, key, st)
	}
	return appendSet(b, key, st)
}

// appendHash writes the commands that make a key with these limits. The key may have been of another kind, so DEL comes first. A log that
// the file already has is only extended, so then there is no DEL.
func appendHash(b, key []byte, st store.Value) []byte {
	limits := *st.Limits
	if len(limits) == 0 { // their policies are gone
		return wire.AppendCommand(b, wordDel, key)
	}
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
	if at := rdb.ExpiryMS(st); at >= 0 {
		b = wire.AppendCommand(b, wordPExpireAt, key, strconv.AppendInt(nil, at, 10))
	}
	return b
}

// What stands between these two is a unit: whoever reads the file, celld or Redis, runs all of it or none. Between them may be several
// pieces, each with its stamp.
const (
	Multi = "*1\r\n$5\r\nMULTI\r\n"
	Exec  = "*1\r\n$4\r\nEXEC\r\n"
)

// IsOne reports whether b is one command, which needs no transaction.
func IsOne(b []byte) bool {
	_, n, _ := wire.ParseCommand(b, nil)
	return n == len(b)
}

// AppendSetting writes a policy, a rule or the like by its text; SettingGone removes it.
func AppendSetting(b []byte, setting policy.Setting, text string) []byte {
	return wire.AppendCommand(b, "ECHO", rdb.SettingNames[setting.Kind]+" "+text+" "+setting.Name)
}

// SettingGone stands in place of the text of a setting that was removed.
const SettingGone = "-"
