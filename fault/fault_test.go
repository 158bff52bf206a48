package fault_test

import (
	"slices"
	"testing"

	"celld/fault"
)

func TestThrough(t *testing.T) {
	through := func(packages ...string) (is bool) {
		defer func() {
			if recover() != nil {
				is = fault.Through(packages...)
			}
		}()
		slices.SortFunc([]int{1, 2}, func(int, int) int { panic("fn") })
		return false
	}
	for path, want := range map[string]bool{"slices": true, "celld/fault_test": true, "celld/fault": false, "celld": false, "slice": false} {
		if got := through("celld/store", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
