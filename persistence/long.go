package persistence

import (
	"bytes"

	"celld/store"
)

// Steps in the background run in an event loop, with a lock on the store. To write 65,536 leases as text takes 10 to 25 ms. So a step
// copies such a state, in 1 to 4 ms, and a goroutine makes the text.

// asideBytes is how many bytes of rings take longer than a millisecond to write as text.
const asideBytes = 128 << 10

// isLong reports whether the text of a state takes long. Only the new end is written of a log that is in the file.
func isLong(st store.Value) bool {
	if st.Limits == nil {
		return false
	}
	words := 0
	for i := range *st.Limits {
		if l := &(*st.Limits)[i]; !l.Told.Known() {
			words += len(l.State.Ring)
		}
	}
	return 8*words > asideBytes
}

// copiedState is a copy of a key and its state.
type copiedState struct {
	key []byte
	st  store.Value
}

func copyState(key []byte, st store.Value) copiedState {
	limits := st.Limits.Clone()
	st.Limits = &limits
	return copiedState{bytes.Clone(key), st}
}
