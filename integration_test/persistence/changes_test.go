package persistence

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceOfEveryCommand makes random changes of every kind and more keys than there is room for, and compares what
// the next server knows: after an end in order, and after a kill.
func TestPersistenceOfEveryCommand(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"rdb": "--save '3600 1'", "aof": "--appendonly yes",
		"aof rewritten": "--appendonly yes --auto-aof-rewrite-min-size 1kb",
		"aof killed":    "--appendonly yes --appendfsync always",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd, dir := celldtest.NewRand(t), t.TempDir()
			all := append([]string{"--dir", dir, "--max-keys", "60"}, celldtest.SplitQuoted(t, flags)...)
			for range 3 {
				srv := harness.Spec{Flags: all, Dies: true}.Start(t)
				c := harness.Dial(t, srv.Addr)
				for range 1000 {
					key, other := fmt.Sprint("key:", rnd.IntN(80)), fmt.Sprint("key:", rnd.IntN(80))
					at := time.Now().Add(time.Hour + time.Duration(rnd.Int64N(int64(time.Hour))))
					throttle := "CL.THROTTLE " + key + " 9 1 86400"
					sets := []string{"", " PXAT " + fmt.Sprint(at.UnixMilli()-1000), " EX 3000", " KEEPTTL", " NX", " XX", " PX 1"}
					changes := []string{
						throttle, throttle, throttle, throttle + " 3", throttle + " -1", throttle + " -1000",
						"SET " + key + " " + fmt.Sprint(at.UnixNano()) + sets[rnd.IntN(len(sets))], "SET " + key + " 18446744073709551615",
						"SET " + key + " 5", "DEL " + key, "UNLINK " + key + " " + other, "RENAME " + key + " " + other,
						"RENAMENX " + key + " " + other, "COPY " + key + " " + other, "COPY " + key + " " + other + " REPLACE",
						"SETNX " + key + " " + fmt.Sprint(at.UnixNano()), "GETSET " + key + " " + fmt.Sprint(at.UnixNano()),
						"GETDEL " + key, "GETEX " + key + " PXAT " + fmt.Sprint(at.UnixMilli()-500), "GETEX " + key + " PERSIST",
						"EXPIRE " + key + " 3000", "PEXPIREAT " + key + " " + fmt.Sprint(at.UnixMilli()), "PEXPIRE " + key + " 1",
						"EXPIRE " + key + " -1", "PERSIST " + key,
					}
					c.Do(strings.Fields(changes[rnd.IntN(len(changes))])...)
				}
				if rnd.IntN(3) == 0 {
					c.Do("FLUSHALL")
					c.Throttle("after", "9", "1", "86400")
				}
				want := settled(c)
				if name == "aof killed" {
					srv.Cmd.Process.Kill()
					<-srv.Exited
				} else {
					srv.Cmd.Process.Signal(syscall.SIGTERM)
					srv.Wait(0)
				}
				checkFiles(t, dir)
				next := harness.Spec{Flags: all}.Start(t)
				same(t, name, settled(harness.Dial(t, next.Addr)), want)
				next.Stop()
			}
		})
	}
}

// settled is the state of all keys once none expires within a minute. A key whose TAT has passed may stay in memory, by EXPIRE or as SET
// gave it such a TAT, and is not read again. What expires later than its TAT ends with that, so that is its expiry when it has been read.
func settled(c *harness.Conn) map[string]keyState {
	c.T.Helper()
	var keys map[string]keyState
	celldtest.Eventually(c.T, "what is about to expire has expired", func() bool {
		keys = map[string]keyState{}
		nowMS := time.Now().UnixMilli()
		for key, st := range statesOf(c) {
			tat, err := strconv.ParseUint(st.tat, 10, 64)
			if err != nil {
				return false
			}
			tatMS := int64(tat / 1e6)
			endMS := tatMS
			if st.expires != -1 {
				st.expires = min(st.expires, tatMS)
				endMS = st.expires
			}
			switch {
			case tatMS < nowMS:
			case endMS < nowMS+60_000:
				return false
			default:
				keys[key] = st
			}
		}
		return true
	})
	return keys
}
