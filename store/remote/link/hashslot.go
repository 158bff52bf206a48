package link

import (
	"strconv"
	"strings"
)

// hashSlots is how many hash slots a Cluster has.
const hashSlots = 1 << 14

// HashSlot is the hash slot of a key: the CRC16 of its hash tag, or of all of it
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
func HashSlot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return crc % hashSlots
}

// crcTable is of CRC-16/XMODEM: the polynomial 0x1021, no reflection.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// Beside is a key with this ending in the hash slot of another key. "": the braces of that key allow none.
func (l *Link) Beside(key, ending string) string {
	name := key + ending
	if !l.cluster.Load() || HashSlot(name) == HashSlot(key) {
		return name
	}
	if name = "{" + key + "}" + ending; strings.HasPrefix(key, l.options.Prefix) {
		name = l.options.Prefix + "{" + key + "}" + ending
	}
	if HashSlot(name) != HashSlot(key) {
		return ""
	}
	return name
}

// PerHashSlot is the key of Options.PerHashSlot in the slot of another key. "": that name has a tag of its own, of another slot.
func (l *Link) PerHashSlot(key string) string {
	name, slot := l.options.PerHashSlot, HashSlot(key)
	if !l.cluster.Load() || HashSlot(name) == slot {
		return name
	}
	if name = string(l.appendTagged(nil, l.findTags()[slot])); HashSlot(name) != slot {
		return ""
	}
	return name
}

// findTags returns the first tag of each slot. To find them takes some milliseconds, so a connection does it before a call needs one.
func (l *Link) findTags() []uint32 {
	l.tagOnce.Do(func() {
		const mostTags = 1 << 18 // 170,000 mostly do
		l.tags = make([]uint32, hashSlots)
		var known [hashSlots]bool
		var name []byte // one for all: a string for each took 1.8 times as long
		for i, found := uint32(0), 0; i < mostTags && found < hashSlots; i++ {
			name = l.appendTagged(name[:0], i)
			if slot := HashSlot(string(name)); !known[slot] {
				l.tags[slot], known[slot] = i, true
				found++
			}
		}
	})
	return l.tags
}

func (l *Link) appendTagged(b []byte, tag uint32) []byte {
	b = append(append(b, l.options.PerHashSlot...), ":{"...)
	return append(strconv.AppendUint(b, uint64(tag), 36), '}')
}
