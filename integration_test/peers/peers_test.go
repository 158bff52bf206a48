package peers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// The limiters that CL.TAKE stands in for are driven through the same calls as celld, and their answers compared: some as
// they are (redis-cell, redis_rate, nginx, commands and scripts on redis-server), others as models of what they publish, on
// instants that the test sets (exact_test.go). All that may differ is in this table, which README.md repeats.

// peer is a row of it.
type peer struct {
	theirs, celld string
	by            string // what celld is compared with
	differs       string // all that may differ
}

// Comparisons in real time tolerate this difference, as one is asked after the other.
const (
	peerTimes = 200 * time.Millisecond // what replies tell of times
	peerCalls = 1                      // of a series at a pace above the rate
)

const (
	scripted = "a script on redis-server, exact times"
	modelled = "a model, exact times"
)

var peers = []peer{
	{"redis-cell `CL.THROTTLE k 15 30 60`", "`CL.TAKE k 30/60s,burst=16`", "redis-cell 0.2.2", "times: milliseconds here, seconds there"},
	{"redis_rate `Limit{Rate: 10, Burst: 20, Period: time.Minute}`, `AllowN`; `AllowAtMost`", "`10/1m,burst=20`, `COST n`; `UPTO`", "redis_rate 10.0.1", "after a denied call, remaining is 0 there. `AllowAtMost` may spend a fraction more there than it grants"},
	{"nginx `limit_req`, `rate=10r/s`, `burst=20 nodelay`", "`10/1s,burst=21`", "nginx over HTTP", "1 call of a series, as nginx counts in whole milliseconds"},
	{"nginx `limit_req`, `rate=5r/s`, `burst=4`; `burst=5 delay=2`", "`5/1s,burst=1`, `WAIT 800`; `5/1s,burst=3`, `WAIT 600`", "nginx over HTTP", "10 ms, as nginx reads a coarse clock"},
	{"nginx `limit_conn` of 3", "`3/1h,algo=conc`, `CL.RELEASE`", "nginx over HTTP", "nginx sees by itself that a connection has ended"},
	{"nginx `geo` and `map` with an empty key or `return 403`", "`CL.RULE ADD ALLOW\\|DENY ip: CIDR 10.0.0.0/8`", "nginx over HTTP", "where nets overlap, the smallest decides there, and DENY here"},
	{"Guava `create(10)`, `tryAcquire()`", "`10/1s,burst=11`", "answers of Guava 31.1, recorded", "Guava starts with 1 permit, celld with all 11: to match it, take 10 first. Guava's `tryAcquire(n)` passes whenever `tryAcquire()` would: use a `PEEK`, then `COST n FORCE`"},
	{"Guava `create(10, 5, SECONDS)`, `tryAcquire(n)`", "`10/1s,warmup=5s`, `COST n`", "Guava 31.1, its clock set by hand", "1 µs a call, as Guava counts in whole microseconds"},
	{"Guava `create(10, 1, SECONDS)`, `acquire()`", "`10/1s,warmup=1s`, `WAIT t`", "Guava 31.1", "nothing"},
	{"Guava `create(5)`, `tryAcquire(t)`, `acquire(n)`", "`5/1s`, `WAIT t`, `COST n`", "Guava 31.1", "in Guava a call goes ahead when the calls before it are paid, here when it is paid itself. For Guava's moments: `burst=6`, `WAIT t`, then `COST n-1 FORCE`"},
	{"Java's `DelayQueue`, elements due one after another", "`20/3s,burst=1`, `WAIT t`", "OpenJDK 17", "the elements: celld keeps none"},
	{"`INCR`, and `EXPIRE` if it answers 1", "`100/1m,algo=window`", "redis-server, by commands and in Lua", "Redis also counts denied calls; the result is the same"},
	{"a counter with the minute's number in its key", "`100/1m,algo=window,align=clock`", scripted, "nothing"},
	{"two such counters, the previous one weighted", "`100/1m,algo=slide`", scripted, "nothing"},
	{"a hash or list of counters for parts of the minute", "`100/1m,algo=slide,buckets=6`", scripted, "nothing"},
	{"a sorted set or list of all calls", "`100/1m,algo=log`", scripted, "nothing"},
	{"a token bucket in a hash; a leaky bucket as a meter", "`10/1s,burst=20`", scripted, "up to 1 ns a call, where the count does not divide the period"},
	{"a leaky bucket as a queue", "`20/3s,burst=1`, `WAIT t`", scripted, "nothing"},
	{"a token bucket that says how long to wait", "`60/1m,burst=8`, `COST n RESERVE t US`", scripted, "nothing"},
	{"a lock: `SET k token NX PX 60000`, scripts that delete or extend", "`1/1m,algo=conc`, `CL.RELEASE`, `CL.RENEW`", "redis-server", "a token is random, an id grows"},
	{"Redisson `trySetRate(OVERALL, 5, 1, SECONDS)`; `tryAcquire(n)`", "`CL.POLICY SET p 5/1s,algo=log NX`; `CL.TAKE k @p COST n`", "its algorithm in a script, as above; also `getConfig` and `setRate`: `CL.POLICY GET p`, `CL.POLICY SET p … XX RESET`", "retry after: until the call passes here, until the oldest call leaves there"},
	{"Redisson `tryAcquire(n, t)`; `PER_CLIENT`", "`CL.TAKE k @p COST n WAIT t`; the client's id in the key", "Redisson 4.7.0, also `acquire(n)`", "Redisson refuses when the time is over, celld as soon as it is known. Here callers pass in the order in which they came"},
	{"Redisson `RSemaphore`, `RPermitExpirableSemaphore`; `RFencedLock`", "`2/1h,algo=conc`, `WAIT t`, `CL.RENEW`, `CL.RELEASE`; `1/1h,algo=conc`", "Redisson 4.7.0", "the holder of a lock may take it again there"},
	{"Sentinel: QPS of 20", "`20/1s,algo=slide,buckets=2`", modelled, "nothing: it is a `LeapArray` of 2 × 500 ms"},
	{"Sentinel: queueing, 5 a second, `maxQueueingTimeMs` 700", "`5/1s,burst=1`, `WAIT 700`", "Sentinel 1.8.8", "nothing"},
	{"Sentinel: warm-up with queueing, 20 a second after 3 seconds", "`20/1s,warmup=3s`, `WAIT t`", "Sentinel 1.8.8", "what passes in a second, as Sentinel looks once a second at how warm it is"},
	{"Sentinel: 3 threads", "`3/1h,algo=conc`, `CL.RELEASE`", "Sentinel 1.8.8", "nothing"},
	{"Sentinel: `entryWithPriority`, 4 a second", "`4/1s,algo=window`, `RESERVE 500`", "Sentinel 1.8.8", "windows are halves of a second of the clock there, and begin with the first call here"},
	{"Sentinel's token server: `NO_RULE_EXISTS`", "`NOPOLICY`", "the reply", "nothing"},
}

// String is a line of README.md.
func (p peer) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s |\n", p.theirs, p.celld, p.by, p.differs)
}

// TestPeersTable holds README.md to the table, and docs/how-to/migrate.md to the first two columns of those lines that it repeats.
func TestPeersTable(t *testing.T) {
	t.Parallel()
	want := "| theirs | here | compared with | may differ |\n| --- | --- | --- | --- |\n"
	for _, p := range peers {
		want += p.String()
	}
	if !strings.Contains(celldtest.ReadFile(t, compared), want) {
		t.Errorf("%s does not have this table:\n%s", compared, want)
	}
	_, table, _ := strings.Cut(celldtest.ReadFile(t, migrate), "\n| theirs | here |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 20 {
		t.Errorf("%s has %d lines of the table", migrate, len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(want, "\n"+row+" ") {
			t.Errorf("%s: no test compares\n%s", migrate, row)
		}
	}
}
