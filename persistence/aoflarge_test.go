//go:build !race

package persistence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// A command that is larger than one read takes time by its length, not by its square.
func TestAOFLargeCommands(t *testing.T) {
	at := fmt.Sprint(t0 + 9*second)
	for name, large := range map[string]string{
		"a long word": "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8000000\r\n" + strings.Repeat("x", 8_000_000) + "\r\n",
		"many words":  "*1000000\r\n$3\r\nDEL\r\n" + strings.Repeat("$1\r\nx\r\n", 999_999),
		"a long line": "*3\r\n$3\r\nSET\r\n$" + strings.Repeat("0", 3_000_000) + "1\r\nb\r\n$1\r\nx\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w, files := inMemory(t, appendOnly)
			text := aofText("SET a "+at) + large
			files.put(w.path("appendonly.aof"), []byte(text+aofText("SET c "+at)))
			began := celldtest.CPUTime(t)
			w.mustOpen()
			if took := celldtest.CPUTime(t) - began; took > 5*time.Second {
				t.Errorf("it took %v of CPU time", took)
			}
			if n := len(w.states()); n != 2 {
				t.Errorf("%d keys, want 2", n)
			}
			files.put(w.path("appendonly.aof"), []byte(text[:len(text)-1]))
			w.mustOpen()
			if n := len(w.states()); n != 1 {
				t.Errorf("%d keys, want 1", n)
			}
		})
	}
}
