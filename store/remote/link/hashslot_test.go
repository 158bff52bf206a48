package link

import (
	"strconv"
	"testing"
)

// Instances of celld that share a Cluster must find the same name: the first tag of 0, 1, … z, 10, … whose slot is the key's.
func TestNamesPerHashSlot(t *testing.T) {
	for _, prefix := range []string{"", "p:celld:ids", "a{b", "a prefix that is longer than thirty-two bytes"} {
		l := New(Options{PerHashSlot: prefix})
		l.cluster.Store(true)
		for i := range 20 {
			key := "key" + strconv.Itoa(i)
			want, tag := prefix, int64(0)
			for HashSlot(want) != HashSlot(key) {
				want = prefix + ":{" + strconv.FormatInt(tag, 36) + "}"
				tag++
			}
			if got := l.PerHashSlot(key); got != want {
				t.Errorf("%q in the slot of %s: %q, want %q", prefix, key, got, want)
			}
		}
	}
	l := New(Options{PerHashSlot: "a{tag}"})
	l.cluster.Store(true)
	if got := l.PerHashSlot("elsewhere"); got != "" {
		t.Errorf("a name that has a tag of its own is %q in another slot", got)
	}
}
