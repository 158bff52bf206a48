package take

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestTakeManyClients runs clients that take from the same limits by every command and in pipelines, while files are rewritten and
// policies and rules come and go. No limit lets more through than it may. Two keys that are always taken together keep the same
// remaining.
func TestTakeManyClients(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "4", "--dir", t.TempDir(), "--appendonly", "yes", "--save", "3600 1")
	const each, clients = 200, 8
	limits := []string{"700/30d,burst=700", "700/300d,algo=window", "700/300d,algo=slide", "700/300d,algo=slide,buckets=9",
		"700/300d,algo=log", "@kept"}
	harness.Dial(t, srv.Addr).Play(step{"CL.POLICY SET kept 700/300d,algo=window", ":1"}, step{"CL.RULE ADD DENY nobody", ":1"})
	rnd := celldtest.NewRand(t)
	var granted [6]atomic.Int64
	var all sync.WaitGroup
	for range clients {
		c, rnd := harness.Dial(t, srv.Addr), rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			for range each {
				i := rnd.IntN(len(limits))
				key := "k" + limits[i]
				switch rnd.IntN(6) {
				case 0: // two at once, in any order
					pair := []string{"CL.MTAKE", "2", "left", "900/300d,algo=log", "right", "900/300d,algo=log",
						"UPTO", "COST", fmt.Sprint(1 + rnd.Int64N(5))}
					if rnd.IntN(2) == 0 {
						pair[2], pair[4] = pair[4], pair[2]
					}
					c.Do(pair...)
				case 1: // changed by others since it was read
					c.Do("CL.POLICY", "SET", "other", fmt.Sprintf("%d/1h", 1+rnd.IntN(9)))
					c.Do("CL.TAKE", fmt.Sprint("other", rnd.IntN(20)), "@other", limits[i])
				case 2:
					c.Do("CL.RULE", []string{"ADD", "DEL"}[rnd.IntN(2)], "DENY", fmt.Sprint("other", rnd.IntN(20)))
					c.Do([]string{"BGSAVE", "BGREWRITEAOF", "HGETALL", "HLEN"}[rnd.IntN(4)], key)
				case 3:
					var reply harness.Taken
					raw := c.Do("CL.TAKE", key, limits[i], "COST", fmt.Sprint(1+rnd.Int64N(4)), "UPTO")
					fmt.Sscanf(raw, "*7\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &reply.Limited, &reply.Limit, &reply.Remaining,
						&reply.RetryMS, &reply.ResetMS, &reply.Granted)
					granted[i].Add(reply.Granted)
				default:
					one := string(harness.Frame("CL.TAKE", key, limits[i]))
					if _, err := c.Write([]byte(strings.Repeat(one, 16))); err != nil {
						t.Error(err)
						return
					}
					for range 16 {
						raw, err := c.TryReply(harness.ReplyTimeout)
						if err != nil || !strings.HasPrefix(raw, "*7\r\n") {
							t.Errorf("%s: %q, %v", limits[i], raw, err)
							return
						}
						if strings.HasPrefix(raw, "*7\r\n:0\r\n") {
							granted[i].Add(1)
						}
					}
				}
			}
		})
	}
	all.Wait()
	c := harness.Dial(t, srv.Addr)
	for i, limit := range limits {
		if got, left := granted[i].Load(), c.Take("k"+limit, limit, "COST", "0").Remaining; got != 700-left || got < 600 {
			t.Errorf("%s: %d were granted, and %d are left", limit, got, left)
		}
	}
	left, right := c.Take("left", "900/300d,algo=log", "COST", "0"), c.Take("right", "900/300d,algo=log", "COST", "0")
	if left.Remaining != right.Remaining || left.Remaining == 900 {
		t.Errorf("of two that are taken from together %d and %d are left", left.Remaining, right.Remaining)
	}
	if got := c.Do("INFO", "everything"); !harness.ContainsLine(got, "handler_panics:0") {
		t.Error("a handler has panicked")
	}
}
