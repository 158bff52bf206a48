package memory

import "testing"

// What would fit if all spent keys went. To need none of a kind is to need no room of it.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		maxKeys, maxBytes int64
		needed            need
		suffice           bool
	}{ // of 10 keys of 1000 bytes, 2 keys of 200 are spent
		{11, 0, need{1, 1e9}, true},
		{10, 0, need{1, 1}, true},
		{9, 0, need{1, 1}, true},
		{8, 0, need{1, 1}, false},
		{8, 0, need{0, 1e9}, true},
		{10, 1100, need{0, 100}, true},
		{10, 1000, need{0, 100}, true},
		{10, 900, need{0, 100}, true},
		{10, 899, need{0, 100}, false},
		{10, 500, need{}, true},
	} {
		var r room
		r.maxKeys.Store(c.maxKeys)
		r.maxBytes.Store(c.maxBytes)
		r.keys.Store(10)
		r.bytes.Store(1000)
		r.countSpent(2, 200)
		if suffice := r.spentSuffice(c.needed); suffice != c.suffice {
			t.Errorf("%+v: spent suffice %v", c, suffice)
		}
	}
}
