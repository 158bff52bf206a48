package resp

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// INFO errorstats and total_error_replies count the same replies, those of batches among them.
func TestErrorStats(t *testing.T) {
	w := newWorld(t, "maxmemory-policy", "noeviction", "max-keys", "1")
	c := w.connect()
	c.do("CL.TAKE", "k", "5/1h")
	wrongType := frame("CL.THROTTLE", "k", "15", "30", "60")
	c.send(strings.Repeat(wrongType, 10) + strings.Repeat(frame("CL.TAKE", "full", "5/1h"), 10) + frame("CL.THROTTLE", "k", "x", "y", "z") + "NOSUCH\r\n")
	info := c.do("INFO", "errorstats")
	if want := "# Errorstats\r\nerrorstat_Cell:count=1\r\nerrorstat_ERR:count=1\r\nerrorstat_OOM:count=10\r\nerrorstat_WRONGTYPE:count=10\r\n"; !strings.Contains(info, want) {
		t.Errorf("INFO errorstats: %q, want %q", info, want)
	}
	if info := c.do("INFO", "stats"); !strings.Contains(info, "total_error_replies:22\r\n") {
		t.Errorf("INFO stats: %q", info)
	}
}

// Whatever words errors begin with, 128 of them are counted by themselves.
func TestErrorStatsAreBounded(t *testing.T) {
	var st errorStats
	var peers sync.WaitGroup
	for range 4 {
		peers.Go(func() {
			for i := range 1000 {
				st.count(fmt.Appendf(nil, "-WORD%d x\r\n", i))
				st.count([]byte("-NOSPACE\r\n"))
				st.count([]byte("-" + strings.Repeat("x", 100) + " y\r\n"))
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
