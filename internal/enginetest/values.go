package enginetest

import (
	"math"
	"slices"
	"strings"

	"celld/resp/wire"
)

// valueCommands are those of strings, hashes and lists.
func valueCommands() []command {
	return []command{
		{"get", 2, reads, oneKey, get},
		{"set", -3, writes | grows, oneKey, set},
		{"strlen", 2, reads, oneKey, strlen},
		{"hget", 3, reads, oneKey, hget},
		{"hgetall", 2, reads, oneKey, hgetall},
		{"hlen", 2, reads, oneKey, hlen},
		{"hset", -4, writes | grows, oneKey, hset},
		{"hdel", -3, writes, oneKey, hdel},
		{"lrange", 4, reads, oneKey, lrange},
		{"rpush", -3, writes | grows, oneKey, rpush},
		{"lpop", -2, writes, oneKey, lpop},
		{"lrem", 4, writes, oneKey, lrem},
	}
}

func get(x *call) {
	if v, ok := x.of("string"); ok {
		x.textOf(v)
	}
}

func (x *call) textOf(v *value) {
	if v == nil {
		x.null()
	} else {
		x.bulk(v.text)
	}
}

func strlen(x *call) {
	if v, ok := x.of("string"); ok && v != nil {
		x.int(int64(len(v.text)))
	} else if ok {
		x.int(0)
	}
}

// setOptions reads the options of SET: those that are given, and the word behind PX or PXAT. It answers with an error, and returns false,
// where Redis does.
func (x *call) setOptions() (given map[string]bool, expiry []byte, ok bool) {
	given = map[string]bool{}
	excluded := map[string]string{"NX": "XX", "XX": "NX", "KEEPTTL": "PX PXAT", "PX": "PX PXAT KEEPTTL", "PXAT": "PX PXAT KEEPTTL"}
	for i := 3; i < len(x.args); i++ {
		option := x.option(i)
		switch option {
		case "NX", "XX", "GET", "KEEPTTL":
		case "EX", "EXAT":
			x.unsupported(errSyntax)
			return nil, nil, false
		case "PX", "PXAT":
			if i++; i < len(x.args) {
				expiry = x.args[i]
				break
			}
			fallthrough
		default:
			x.fail(errSyntax)
			return nil, nil, false
		}
		for other := range strings.FieldsSeq(excluded[option]) {
			if given[other] {
				x.fail(errSyntax)
				return nil, nil, false
			}
		}
		given[option] = true
	}
	return given, expiry, true
}

func set(x *call) {
	given, expiry, ok := x.setOptions()
	if !ok {
		return
	}
	expires := int64(never)
	if expiry != nil {
		since := int64(0)
		if given["PX"] {
			since = x.nowMs()
		}
		ms, ok := integer(expiry)
		switch {
		case !ok:
			x.fail(errInteger)
			return
		case ms <= 0 || ms > math.MaxInt64-since:
			x.fail("ERR invalid expire time in 'set' command")
			return
		}
		expires = since + ms
	}
	old := x.find(x.args[1])
	if given["GET"] {
		if old != nil && old.kind != "string" {
			x.fail(errType)
			return
		}
		x.textOf(old)
	}
	if given["NX"] && old != nil || given["XX"] && old == nil {
		if !given["GET"] {
			x.null()
		}
		return
	}
	if given["KEEPTTL"] && old != nil {
		expires = old.expires
	}
	if expiry != nil && expires <= x.nowMs() {
		x.db.remove(x.arg(1))
	} else {
		x.db.put(x.arg(1), &value{kind: "string", text: x.arg(2), expires: expires, size: int64(len(x.args[2]))})
	}
	if !given["GET"] {
		x.ok()
	}
}

func hget(x *call) {
	v, ok := x.of("hash")
	if !ok {
		return
	}
	if v != nil {
		if text, there := v.hash[x.arg(2)]; there {
			x.bulk(text)
			return
		}
	}
	x.null()
}

func hgetall(x *call) {
	v, ok := x.of("hash")
	if !ok {
		return
	}
	if v == nil {
		x.pairs(0)
		return
	}
	x.pairs(len(v.fields))
	for _, f := range v.fields {
		x.out = wire.AppendBulks(x.out, f, v.hash[f])
	}
}

func hlen(x *call) {
	if v, ok := x.of("hash"); ok && v != nil {
		x.int(int64(len(v.fields)))
	} else if ok {
		x.int(0)
	}
}

func hset(x *call) {
	if len(x.args)%2 == 1 {
		x.wrongArity("hset")
		return
	}
	v, ok := x.make("hash")
	if !ok {
		return
	}
	n := int64(0)
	for i := 2; i < len(x.args); i += 2 {
		if v.setField(x.arg(i), x.arg(i+1)) {
			n++
		}
	}
	x.int(n)
}

func hdel(x *call) {
	v, ok := x.of("hash")
	if !ok {
		return
	}
	n := int64(0)
	for _, name := range x.args[2:] {
		if v != nil && v.deleteField(string(name)) {
			n++
		}
	}
	if v != nil && len(v.fields) == 0 {
		x.db.remove(x.arg(1))
	}
	x.int(n)
}

func lrange(x *call) {
	first, ok1 := integer(x.args[2])
	last, ok2 := integer(x.args[3])
	if !ok1 || !ok2 {
		x.fail(errInteger)
		return
	}
	v, ok := x.of("list")
	if !ok {
		return
	}
	var found []string
	if v != nil {
		n := int64(len(v.list))
		if first < 0 {
			first = max(0, first+n)
		}
		if last < 0 {
			last += n
		}
		if last = min(last, n-1); first <= last {
			found = v.list[first : last+1]
		}
	}
	x.array(len(found))
	x.out = wire.AppendBulks(x.out, found...)
}

func rpush(x *call) {
	v, ok := x.make("list")
	if !ok {
		return
	}
	for _, text := range x.args[2:] {
		v.list = append(v.list, string(text))
	}
	v.setList(v.list)
	x.int(int64(len(v.list)))
}

func lpop(x *call) {
	if len(x.args) > 2 {
		x.unsupported(errSyntax)
		return
	}
	v, ok := x.of("list")
	if !ok {
		return
	}
	if v == nil {
		x.null()
		return
	}
	x.bulk(v.list[0])
	x.keepList(v, v.list[1:])
}

// keepList stores what is left of a list.
func (x *call) keepList(v *value, left []string) {
	if v.setList(left); len(left) == 0 {
		x.db.remove(x.arg(1))
	}
}

func lrem(x *call) {
	count, ok := integer(x.args[2])
	if !ok {
		x.fail(errInteger)
		return
	}
	v, ok := x.of("list")
	if !ok {
		return
	}
	if v == nil {
		x.int(0)
		return
	}
	list, most := slices.Clone(v.list), count
	if count < 0 {
		slices.Reverse(list)
		most = -count
	}
	gone := int64(0)
	list = slices.DeleteFunc(list, func(text string) bool {
		if text != x.arg(3) || most > 0 && gone == most {
			return false
		}
		gone++
		return true
	})
	if count < 0 {
		slices.Reverse(list)
	}
	x.keepList(v, list)
	x.int(gone)
}
