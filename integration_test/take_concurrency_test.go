package integration_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTakeManyClients has clients take from the same limits by every command and in pipelines, while files are rewritten and
// policies and rules come and go. No limit lets more through than it has, and two keys that are only taken from together
// have the same left.
func TestTakeManyClients(t *testing.T) {
	t.Parallel()
	srv := startStress(t, "--io-threads", "4", "--dir", t.TempDir(), "--appendonly", "yes", "--save", "3600 1")
	const each, clients = 400, 8
	limits := []string{"700/30d,burst=700", "700/300d,algo=window", "700/300d,algo=slide", "700/300d,algo=slide,buckets=9", "700/300d,algo=log", "@kept"}
	dial(t, srv.addr).play(step{"CL.POLICY SET kept 700/300d,algo=window", ":1"}, step{"CL.RULE ADD DENY nobody", ":1"})
	rnd := newRand(t)
	var granted [6]atomic.Int64
	var all sync.WaitGroup
	for range clients {
		c, rnd := dial(t, srv.addr), rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			for range each {
				i := rnd.IntN(len(limits))
				key := "k" + limits[i]
				switch rnd.IntN(6) {
				case 0: // two at once, in any order
					pair := []string{"CL.MTAKE", "2", "left", "900/300d,algo=log", "right", "900/300d,algo=log", "UPTO", "COST", itoa(1 + rnd.Int64N(5))}
					if rnd.IntN(2) == 0 {
						pair[2], pair[4] = pair[4], pair[2]
					}
					c.do(pair...)
				case 1: // changed behind the back of those that have read it
					c.do("CL.POLICY", "SET", "other", fmt.Sprintf("%d/1h", 1+rnd.IntN(9)))
					c.do("CL.TAKE", fmt.Sprint("other", rnd.IntN(20)), "@other", limits[i])
				case 2:
					c.do("CL.RULE", []string{"ADD", "DEL"}[rnd.IntN(2)], "DENY", fmt.Sprint("other", rnd.IntN(20)))
					c.do([]string{"BGSAVE", "BGREWRITEAOF", "HGETALL", "HLEN"}[rnd.IntN(4)], key)
				case 3:
					var reply taken
					raw := c.do("CL.TAKE", key, limits[i], "COST", itoa(1+rnd.Int64N(4)), "UPTO")
					fmt.Sscanf(raw, "*7\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &reply.limited, &reply.limit, &reply.remaining, &reply.retryMS, &reply.resetMS, &reply.granted)
					granted[i].Add(reply.granted)
				default:
					one := string(frame("CL.TAKE", key, limits[i]))
					if _, err := c.Write([]byte(strings.Repeat(one, 16))); err != nil {
						t.Error(err)
						return
					}
					for range 16 {
						raw, err := c.tryReply(replyTimeout)
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
	c := dial(t, srv.addr)
	for i, limit := range limits {
		if got, left := granted[i].Load(), c.take("k"+limit, limit, "COST", "0").remaining; got != 700-left || got < 600 {
			t.Errorf("%s: %d were granted, and %d are left", limit, got, left)
		}
	}
	left, right := c.take("left", "900/300d,algo=log", "COST", "0"), c.take("right", "900/300d,algo=log", "COST", "0")
	if left.remaining != right.remaining || left.remaining == 900 {
		t.Errorf("of two that are taken from together %d and %d are left", left.remaining, right.remaining)
	}
	if got := c.do("INFO", "everything"); !containsLine(got, "handler_panics:0") {
		t.Error("a handler has panicked")
	}
}
