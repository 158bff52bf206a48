package view

import (
	"fmt"
	"testing"
)

// A view finds its keys, however many, and none that it does not have.
func TestAViewFindsItsKeys(t *testing.T) {
	for _, n := range []int{0, 1, 2, 33, 100} {
		v := &View{views: newStore(Options{Prefix: "p:"}).Views, places: map[string]int{}}
		for i := range 2 * n {
			v.add(fmt.Sprint("p:", i%max(n, 1)))
		}
		if len(v.keys) != n {
			t.Fatalf("%d keys of %d", len(v.keys), n)
		}
		for i := range n {
			if k := v.find(fmt.Sprint("p:", i)); k != &v.keys[i] {
				t.Errorf("%d keys: %d is %v", n, i, k)
			}
		}
		if k := v.find(fmt.Sprint("p:", n)); k != nil {
			t.Errorf("%d keys: it finds another, %v", n, k)
		}
	}
}
