package enginetest

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"celld/resp/glob"
	"celld/resp/wire"
)

// keyCommands are those of any type of value.
func keyCommands() []command {
	return []command{
		{"del", -2, writes, allKeys, del},
		{"unlink", -2, writes, allKeys, del},
		{"exists", -2, reads, allKeys, exists},
		{"type", 2, reads, oneKey, typeOf},
		{"pexpire", -3, writes, oneKey, func(x *call) { x.expire("pexpire", x.nowMs()) }},
		{"pexpireat", -3, writes, oneKey, func(x *call) { x.expire("pexpireat", 0) }},
		{"pexpiretime", 2, reads, oneKey, func(x *call) { x.expiry(0) }},
		{"pttl", 2, reads, oneKey, func(x *call) { x.expiry(x.nowMs()) }},
		{"persist", 2, writes, oneKey, persist},
		{"scan", -2, reads, noKeys, scan},
		{"dbsize", 1, reads, noKeys, dbsize},
		{"randomkey", 1, reads, noKeys, randomKey},
	}
}

// find is a key's value, nil if there is none. What is over is removed by writes alone: a replica waits for its master to do that.
func (x *call) find(key []byte) *value {
	v := x.db.values[string(key)]
	if v != nil && v.over(x.nowMs()) {
		if x.writes {
			x.db.remove(string(key))
		}
		return nil
	}
	return v
}

// of is find for a kind of value. It answers with an error, and returns false, where the key has another.
func (x *call) of(kind string) (v *value, ok bool) {
	if v = x.find(x.args[1]); v != nil && v.kind != kind {
		x.fail(errType)
		return nil, false
	}
	return v, true
}

// make is of, and makes an empty value where there is none.
func (x *call) make(kind string) (v *value, ok bool) {
	if v, ok = x.of(kind); ok && v == nil {
		v = &value{kind: kind, expires: never}
		if kind == "hash" {
			v.hash = map[string]string{}
		}
		x.db.put(x.arg(1), v)
	}
	return v, ok
}

func del(x *call) {
	n := int64(0)
	for _, key := range x.args[1:] {
		if x.find(key) != nil && x.db.remove(string(key)) {
			n++
		}
	}
	x.int(n)
}

func exists(x *call) {
	n := int64(0)
	for _, key := range x.args[1:] {
		if x.find(key) != nil {
			n++
		}
	}
	x.int(n)
}

func typeOf(x *call) {
	kind := "none"
	if v := x.find(x.args[1]); v != nil {
		kind = v.kind
	}
	x.out = wire.AppendStatus(x.out, kind)
}

// expire sets an expiry in ms since an instant.
func (x *call) expire(name string, since int64) {
	ms, ok := integer(x.args[2])
	switch {
	case !ok:
		x.fail(errInteger)
		return
	case len(x.args) > 3:
		x.unsupported("ERR Unsupported option " + x.arg(3))
		return
	case ms > math.MaxInt64-since:
		x.fail("ERR invalid expire time in '" + name + "' command")
		return
	}
	v := x.find(x.args[1])
	if v == nil {
		x.int(0)
		return
	}
	if v.expires = since + ms; v.expires <= x.nowMs() {
		x.db.remove(x.arg(1))
	}
	x.int(1)
}

// expiry answers how long after an instant a key expires.
func (x *call) expiry(since int64) {
	switch v := x.find(x.args[1]); {
	case v == nil:
		x.int(-2)
	case v.expires == never:
		x.int(-1)
	default:
		x.int(max(0, v.expires-since))
	}
}

func persist(x *call) {
	v := x.find(x.args[1])
	had := v != nil && v.expires != never
	if had {
		v.expires = never
	}
	x.yes(had)
}

// there are the names of keys that are there.
func (x *call) there() (names []string) {
	for _, name := range x.db.names {
		if !x.db.values[name].over(x.nowMs()) {
			names = append(names, name)
		}
	}
	return names
}

// dbsize leaves out what is over, as if Redis had removed it already.
func dbsize(x *call) { x.int(int64(len(x.there()))) }

func randomKey(x *call) {
	names := x.there()
	if len(names) == 0 {
		x.null()
		return
	}
	x.bulk(names[x.node.engine.options.Rand.IntN(len(names))])
}

// place is where a key comes in SCAN, as in a table by hashes: so a key that stays is told, whatever comes and goes meanwhile. It is
// positive, and fits into a cursor as celld's are.
func place(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()>>16 | 1
}

func scan(x *call) {
	cursor, err := strconv.ParseUint(x.arg(1), 10, 64)
	if err != nil {
		x.fail("ERR invalid cursor")
		return
	}
	var pattern *glob.Pattern
	count, kind := int64(10), ""
	for i := 2; i < len(x.args); i += 2 {
		if i+1 == len(x.args) {
			x.fail(errSyntax)
			return
		}
		switch x.option(i) {
		case "MATCH":
			pattern, _ = glob.Compile(x.args[i+1], false)
		case "TYPE":
			kind = x.arg(i + 1)
		case "COUNT":
			n, ok := integer(x.args[i+1])
			if count = n; !ok {
				x.fail(errInteger)
				return
			}
			if n < 1 {
				x.fail(errSyntax)
				return
			}
		default:
			x.fail(errSyntax)
			return
		}
	}
	type at struct {
		place uint64
		name  string
	}
	var all []at
	for _, name := range x.there() {
		if p := place(name); p >= cursor {
			all = append(all, at{p, name})
		}
	}
	slices.SortFunc(all, func(a, b at) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.name, b.name)) })
	next := uint64(0)
	if int64(len(all)) > count {
		next = all[count].place
		for all[count-1].place == next { // they go together
			count--
		}
		all = all[:count]
	}
	var names []string
	for _, a := range all {
		if (pattern == nil || pattern.Match([]byte(a.name))) && (kind == "" || kind == x.db.values[a.name].kind) {
			names = append(names, a.name)
		}
	}
	x.array(2)
	x.bulk(strconv.FormatUint(next, 10))
	x.array(len(names))
	x.out = wire.AppendBulks(x.out, names...)
}
