package storetest_test

import (
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/storetest"
)

func TestLater(t *testing.T) {
	for name, answer := range map[string]func(*storetest.Later){
		"before it returns": func(l *storetest.Later) { l.Answer(0) },
		"from elsewhere":    func(l *storetest.Later) { go l.Answer(0) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func() store.Limiter {
				l := &storetest.Later{Of: memory.New(memory.Options{})}
				l.Tell(func() { answer(l) })
				return l
			})
		})
	}
}
