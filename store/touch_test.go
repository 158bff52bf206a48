package store

import (
	"fmt"
	"testing"

	"celld/cell"
)

// Batches touch a large table, and find out whether all keys are there.
func TestTouch(t *testing.T) {
	s := New(Options{})
	limit, err := cell.NewBucket(4, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	put := func(i int) {
		if _, err := s.Throttle(fmt.Append(nil, i), limit, 1, Access{NowNS: 1}); err != nil {
			t.Fatal(err)
		}
	}
	touch := func(keys ...int) bool {
		var b batch
		for _, key := range keys {
			b.add(s.hash(fmt.Append(nil, key)))
		}
		return s.touch(&b)
	}
	for i := range touchFromKeys - 1 {
		put(i)
	}
	if touch(0, 1, 2) {
		t.Error("a small table is touched")
	}
	put(touchFromKeys - 1)
	for _, c := range []struct {
		keys []int
		all  bool
	}{{[]int{0}, true}, {[]int{5, 6, 7}, true}, {[]int{-1}, false}, {[]int{5, -1, 7}, false}, {[]int{-1, 6}, false}} {
		if all := touch(c.keys...); all != c.all {
			t.Errorf("%d: all there %v", c.keys, all)
		}
	}
}
