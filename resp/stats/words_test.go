package stats

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Whatever words errors begin with, 128 of them are counted by themselves.
func TestErrorStatsAreBounded(t *testing.T) {
	var st ErrorWords
	var peers sync.WaitGroup
	for range 4 {
		peers.Go(func() {
			for i := range 1000 {
				st.Count(fmt.Appendf(nil, "-WORD%d x\r\n", i))
				st.Count([]byte("-NOSPACE\r\n"))
				st.Count([]byte("-" + strings.Repeat("x", 100) + " y\r\n"))
			}
		})
	}
	peers.Wait()
	words, sum := st.read(), int64(0)
	for _, n := range words {
		sum += n.Load()
	}
	if len(words) != mostErrorWords+1 || sum != 12_000 || words["ERR"].Load() != 8000 || words[errorOverflow].Load() != 4*(1000-127) {
		t.Errorf("%d words, %d errors: %v", len(words), sum, words)
	}
}
