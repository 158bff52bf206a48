package remote

import (
	"fmt"
	"testing"
)

// A view finds its keys, however many, and none that it does not have.
func TestAViewFindsItsKeys(t *testing.T) {
	for _, n := range []int{0, 1, fewKeys, fewKeys + 1, 3 * fewKeys} {
		v := &View{store: &Store{options: Options{Prefix: "p:"}}}
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

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 2, 8, 16, 32, 64, 1000} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("limits:tenant:%09d", i)
		}
		s := &Store{options: Options{Prefix: "limits:"}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				v := &View{store: s}
				for _, name := range names {
					v.add(name)
				}
				for _, name := range names {
					v.find(name)
				}
			}
		})
	}
}
