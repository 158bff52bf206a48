package rdb

import (
	"fmt"

	"celld/persistence/source"
)

// The types of values. Strings and hashes can be limits. All others are skipped, so the reader must know where each ends.
const (
	typeString         = 0
	typeList           = 1
	typeSet            = 2
	typeZSet           = 3
	typeHash           = 4
	typeZSet2          = 5
	typeModule         = 6
	typeModule2        = 7
	typeHashZipmap     = 9
	typeListZiplist    = 10
	typeSetIntset      = 11
	typeZSetZiplist    = 12
	typeHashZiplist    = 13
	typeListQuicklist  = 14
	typeStream         = 15
	typeHashListpack   = 16
	typeZSetListpack   = 17
	typeListQuicklist2 = 18
	typeStream2        = 19
	typeSetListpack    = 20
	typeStream3        = 21
	typeHashFieldTTLRC = 22 // of release candidates of 7.4
	typeHashListTTLRC  = 23
	typeHashFieldTTL   = 24
	typeHashListTTL    = 25
)

var typeNames = map[byte]string{
	typeList: "list", typeSet: "set", typeZSet: "zset", typeHash: "hash", typeZSet2: "zset", typeModule: "module", typeModule2: "module",
	typeHashZipmap: "hash", typeListZiplist: "list", typeSetIntset: "set", typeZSetZiplist: "zset", typeHashZiplist: "hash",
	typeListQuicklist: "list", typeStream: "stream", typeHashListpack: "hash", typeZSetListpack: "zset", typeListQuicklist2: "list",
	typeStream2: "stream", typeSetListpack: "set", typeStream3: "stream",
	typeHashFieldTTLRC: "hash", typeHashListTTLRC: "hash", typeHashFieldTTL: "hash", typeHashListTTL: "hash",
}

// skip skips lengths, and then strings.
func (r *reader) skip(lengths, texts int) {
	for range lengths {
		r.length()
	}
	for range texts {
		r.skipString()
	}
}

func (r *reader) skipString() {
	n, coded := r.lengthOrCode()
	switch {
	case coded && n < codedLZF:
		n = 1 << n
	case coded && n == codedLZF:
		n = r.length()
		r.length()
	case coded:
		r.fail(fmt.Errorf("a string of unknown coding %d", n))
	}
	r.skipBytes(n)
}

func (r *reader) skipBytes(n uint64) {
	if n > uint64(r.Left()) {
		r.fail(source.ErrEnd)
	}
	for n > 0 && r.err == nil {
		part := min(n, 64<<10)
		r.bytes(part)
		n -= part
	}
}

// each reads a count and calls f that often.
func (r *reader) each(f func()) {
	for n := r.length(); n > 0 && r.err == nil; n-- {
		f()
	}
}

func (r *reader) skipValue(kind byte) {
	switch kind {
	case typeList, typeSet, typeListQuicklist:
		r.each(r.skipString)
	case typeHash:
		r.each(func() { r.skip(0, 2) })
	case typeZSet:
		r.each(func() {
			r.skipString()
			if n := r.byte(); n < 253 { // 253 to 255 are NaN and the infinities
				r.skipBytes(uint64(n))
			}
		})
	case typeZSet2:
		r.each(func() {
			r.skipString()
			r.skipBytes(8)
		})
	case typeListQuicklist2:
		r.each(func() { r.skip(1, 1) })
	case typeModule2:
		r.module()
	case typeStream, typeStream2, typeStream3:
		r.stream(kind)
	case typeHashFieldTTL:
		r.skipBytes(8)
		r.each(func() { r.skip(1, 2) })
	case typeHashFieldTTLRC:
		r.each(func() { r.skip(1, 2) })
	case typeHashListTTL:
		r.skipBytes(8)
		r.skipString()
	default: // all others are one string
		r.skipString()
	}
}

// module skips what a module wrote: its number, then values, each after its kind.
func (r *reader) module() {
	r.length()
	for r.err == nil {
		switch kind := r.length(); kind {
		case 0:
			return
		case 1, 2:
			r.length()
		case 3:
			r.skipBytes(4)
		case 4:
			r.skipBytes(8)
		case 5:
			r.skipString()
		default:
			r.fail(fmt.Errorf("a module's value of unknown kind %d", kind))
		}
	}
}

// stream skips entries, counters and consumer groups.
func (r *reader) stream(kind byte) {
	counters, groupCounters := 8, 3
	if kind == typeStream {
		counters, groupCounters = 3, 2
	}
	r.each(func() { r.skip(0, 2) })
	r.skip(counters, 0)
	r.each(func() {
		r.skipString()
		r.skip(groupCounters, 0)
		r.consumers(kind)
	})
}

// consumers skips the entries that a group has given out, and the consumers that received them.
func (r *reader) consumers(kind byte) {
	const idBytes, timeBytes = 16, 8
	r.each(func() {
		r.skipBytes(idBytes + timeBytes)
		r.length()
	})
	times := uint64(timeBytes)
	if kind == typeStream3 {
		times = 2 * timeBytes
	}
	r.each(func() {
		r.skipString()
		r.skipBytes(times)
		r.each(func() { r.skipBytes(idBytes) })
	})
}
