package shard

import "testing"

// What would fit if all spent keys went. To need none of a kind is to need no room of it.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		maxKeys, maxBytes int64
		needed            Need
		suffice           bool
	}{ // of 10 keys of 1000 bytes, 2 keys of 200 are spent
		{11, 0, Need{1, 1e9}, true},
		{10, 0, Need{1, 1}, true},
		{9, 0, Need{1, 1}, true},
		{8, 0, Need{1, 1}, false},
		{8, 0, Need{0, 1e9}, true},
		{10, 1100, Need{0, 100}, true},
		{10, 1000, Need{0, 100}, true},
		{10, 900, Need{0, 100}, true},
		{10, 899, Need{0, 100}, false},
		{10, 500, Need{}, true},
	} {
		var r room
		r.maxKeys.Store(c.maxKeys)
		r.maxBytes.Store(c.maxBytes)
		r.Keys.Store(10)
		r.Bytes.Store(1000)
		r.countSpent(2, 200)
		if suffice := r.spentSuffice(c.needed); suffice != c.suffice {
			t.Errorf("%+v: spent suffice %v", c, suffice)
		}
	}
}
