package memory_test

import (
	"celld/store"
	"celld/store/memory/memtest"
)

const (
	t0           = memtest.T0
	second int64 = 1_000_000_000
	hour         = 3600 * second
)

// readLimits reads all that a state has.
func readLimits(st store.Value) {
	for i := 0; st.Limits != nil && i < len(*st.Limits); i++ {
		memtest.LimitText(&(*st.Limits)[i])
	}
}
