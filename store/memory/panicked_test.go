package memory_test

import (
	"slices"
	"testing"

	"celld/store/memory"
)

func TestPanickedIn(t *testing.T) {
	through := func(packages ...string) (is bool) {
		defer func() {
			if recover() != nil {
				is = memory.PanickedIn(packages...)
			}
		}()
		slices.SortFunc([]int{1, 2}, func(int, int) int { panic("fn") })
		return false
	}
	for path, want := range map[string]bool{"slices": true, "celld/store/memory_test": true, "celld/store/memory": false, "celld": true,
		"slice": false} {
		if got := through("celld/nothing", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
