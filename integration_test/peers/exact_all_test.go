//go:build all

package peers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// Limiters that take the time as an argument are asked at the same instants as package cell, so nothing must be tolerated.

// peerCall is a call of a scenario, and what celld says to it.
type peerCall struct {
	ms, cost, left int64
	passed         bool
	passNS, moreNS uint64 // until it passes, and until one more is left
}

// exactPeer is such a limiter: limit is its equivalent here, of a count and a period in ms, and more holds the further arguments of
// its script.
type exactPeer struct {
	script string // in testdata
	limit  func(rnd *rand.Rand) (literal string, count, period, more int64)
	dear   bool // a call may cost more than the limit
	uneven bool // there it may be sooner, by 1 ns for each that was taken
}

var exactPeers = []exactPeer{
	{"clock_window", plainLimit("window,align=clock"), true, false},
	{"two_windows", plainLimit("slide"), true, false},
	{"log_zset", plainLimit("log"), true, false},
	{"log_list", plainLimit("log"), true, false},
	{"redisson", plainLimit("log"), false, false},
	{"buckets_hash", bucketLimit, true, false},
	{"buckets_list", bucketLimit, true, false},
	{"token_bucket", evenLimit, true, false},
	{"leaky_bucket", evenLimit, true, false},
	{"token_bucket", unevenLimit, true, true},
	{"leaky_bucket", unevenLimit, true, true},
}

func plainLimit(algo string) func(rnd *rand.Rand) (string, int64, int64, int64) {
	return func(rnd *rand.Rand) (string, int64, int64, int64) {
		count, period := 1+rnd.Int64N(20), 1+rnd.Int64N(5000)
		return fmt.Sprintf("%d/%dms,algo=%s", count, period, algo), count, period, 0
	}
}

func bucketLimit(rnd *rand.Rand) (string, int64, int64, int64) {
	count, buckets := 1+rnd.Int64N(20), 2+rnd.Int64N(10)
	period := buckets * (1 + rnd.Int64N(500))
	return fmt.Sprintf("%d/%dms,algo=slide,buckets=%d", count, period, buckets), count, period, buckets
}

// evenLimit returns a limit whose emission interval is whole nanoseconds.
func evenLimit(rnd *rand.Rand) (string, int64, int64, int64) {
	return burstLimit(rnd, []int64{1, 2, 4, 5, 8, 10, 16, 20, 1000}[rnd.IntN(9)])
}

// unevenLimit mostly returns one whose emission interval is rounded up here, and a fraction there.
func unevenLimit(rnd *rand.Rand) (string, int64, int64, int64) {
	return burstLimit(rnd, []int64{3, 6, 7, 9, 11, 13}[rnd.IntN(6)])
}

func burstLimit(rnd *rand.Rand, count int64) (string, int64, int64, int64) {
	period, burst := 1+rnd.Int64N(5000), 1+rnd.Int64N(30)
	return fmt.Sprintf("%d/%dms,burst=%d", count, period, burst), count, period, burst
}

// TestPeerScripts runs scripts on redis-server through random scenarios.
func TestPeerScripts(t *testing.T) {
	t.Parallel()
	redis := celldtest.StartRedis(t)
	for _, peer := range exactPeers {
		t.Run(fmt.Sprintf("%s,uneven=%v", peer.script, peer.uneven), func(t *testing.T) {
			t.Parallel()
			c, rnd := harness.Dial(t, redis), celldtest.NewRand(t)
			text, err := os.ReadFile("testdata/" + peer.script + ".lua")
			if err != nil {
				t.Fatal(err)
			}
			sha, _ := harness.Bulk(c.Do("SCRIPT", "LOAD", string(text)))
			sooner := 0
			for i := range 60 {
				literal, count, period, more := peer.limit(rnd)
				calls := playScenario(t, rnd, literal, peer.dear)
				var batch bytes.Buffer
				for _, call := range calls {
					batch.Write(harness.Frame("EVALSHA", sha, "1", fmt.Sprintf("%s:%d", t.Name(), i), fmt.Sprint(call.ms),
						fmt.Sprint(count), fmt.Sprint(period), fmt.Sprint(call.cost), fmt.Sprint(more)))
				}
				c.Send(batch.Bytes())
				taken, apart := int64(0), false // apart: from here on the two have something else before them
				for j, call := range calls {
					var passed, left int64
					raw := c.Reply()
					if _, err := fmt.Sscanf(raw, "*2\r\n:%d\r\n:%d\r\n", &passed, &left); err != nil {
						t.Fatalf("%s: %q", peer.script, raw)
					}
					if call.passed {
						taken += call.cost
					}
					same := call.passed == (passed == 1)
					switch {
					case apart, same && call.left == left:
					case peer.uneven && same && left == call.left+1 && call.moreNS <= uint64(taken),
						peer.uneven && !same && passed == 1 && call.passNS <= uint64(taken):
						apart = !same
						sooner++
					default:
						apart = true
						t.Errorf("%s: passed %d with %d left there\n%s", literal, passed, left, tellCalls(calls[:j+1]))
					}
				}
			}
			if peer.uneven && sooner == 0 {
				t.Error("no call was sooner, so nothing is to tolerate")
			}
		})
	}
}

// playScenario makes calls up, and has celld answer them. They come at once, at any time, and when celld has said that they
// would pass, or a ms earlier.
func playScenario(t *testing.T, rnd *rand.Rand, literal string, dear bool) (calls []peerCall) {
	t.Helper()
	l, err := cell.ParseLimit(literal)
	if err != nil {
		t.Fatal(err)
	}
	var st cell.State
	passed := 0
	ms, periodMs := 1_700_000_000_000+rnd.Int64N(1e9), l.PeriodNS/1e6
	for range 60 {
		call := peerCall{ms: ms, cost: 1}
		switch most := l.Capacity(); rnd.IntN(8) {
		case 0:
			call.cost = 1 + rnd.Int64N(most)
		case 1:
			if dear {
				call.cost = most + rnd.Int64N(2)
			}
		}
		l.Fit(&st, ms*1e6, 1)
		d := l.Decide(&st, ms*1e6, call.cost, cell.Take)
		call.passed, call.left, call.passNS = !d.Limited, d.Remaining, d.RetryAfterNS
		call.moreNS = l.Decide(&st, ms*1e6, call.left+1, cell.Peek).RetryAfterNS
		calls = append(calls, call)
		if call.passed {
			passed++
		}
		switch retryMs := int64((d.RetryAfterNS + 999_999) / 1e6); rnd.IntN(8) {
		case 0:
			ms += rnd.Int64N(periodMs + 1)
		case 1:
			ms += periodMs / l.Capacity()
		case 2:
			ms += 1 + rnd.Int64N(3)
		case 3:
			ms += int64(d.ResetAfterNS / 1e6)
		case 4:
			if d.Limited && d.RetryAfterNS != cell.Never {
				ms += retryMs
			}
		case 5:
			if d.Limited && d.RetryAfterNS != cell.Never {
				ms += max(0, retryMs-1)
			}
		}
	}
	if passed == 0 {
		t.Errorf("%s: none of %d calls passed", literal, len(calls))
	}
	return calls
}

// tellCalls is a scenario as text: ms since its start, ×cost, and whether it passed.
func tellCalls(calls []peerCall) string {
	var b strings.Builder
	for _, call := range calls {
		fmt.Fprintf(&b, "%d×%d %v (%d left)  ", call.ms-calls[0].ms, call.cost, call.passed, call.left)
	}
	return b.String()
}

// leapArray is Sentinel's sliding window: a ring of counters, each with the start of the part of time that it counts, in the
// place that the part has in the ring. One whose start is another is taken over by the part of now.
type leapArray struct {
	partMS, count int64
	ring          []struct{ startMS, passed int64 }
}

func (a *leapArray) passes(ms, cost int64) bool {
	part := &a.ring[ms/a.partMS%int64(len(a.ring))]
	if start := ms - ms%a.partMS; part.startMS != start {
		part.startMS, part.passed = start, 0
	}
	sum := int64(0)
	for _, p := range a.ring {
		if ms-p.startMS <= a.partMS*int64(len(a.ring)) {
			sum += p.passed
		}
	}
	if sum+cost > a.count {
		return false
	}
	part.passed += cost
	return true
}

func TestPeerSentinel(t *testing.T) {
	t.Parallel()
	rnd := celldtest.NewRand(t)
	for range 300 {
		literal, count, period, buckets := bucketLimit(rnd)
		peer := leapArray{partMS: period / buckets, count: count, ring: make([]struct{ startMS, passed int64 }, buckets)}
		calls := playScenario(t, rnd, literal, true)
		for i, call := range calls {
			if got := peer.passes(call.ms, call.cost); got != call.passed {
				t.Errorf("%s: %v there\n%s", literal, got, tellCalls(calls[:i+1]))
				break
			}
		}
	}
}

// TestPeerGuava replays what Guava has answered. Its limiter starts with nothing stored and one call that may go ahead, and it
// asks only whether the calls before have been paid: what a call costs those after it wait for.
func TestPeerGuava(t *testing.T) {
	t.Parallel()
	var l cell.Limit
	var st cell.State
	passed, calls := 0, 0
	const began = int64(1_700_000_000_000_000_000)
	for line := range strings.Lines(celldtest.ReadFile(t, "testdata/guava.txt")) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		if words[0] == "rate" {
			rate, _ := strconv.ParseInt(words[1], 10, 64)
			var err error
			if l, err = cell.ParseLimit(fmt.Sprintf("%d/1s,burst=%d", rate, rate+1)); err != nil {
				t.Fatal(err)
			}
			st = cell.State{}
			l.Decide(&st, began, rate, cell.Take)
			continue
		}
		for _, word := range words {
			var us, n int64
			var answer rune
			if _, err := fmt.Sscanf(word, "%d:%d%c", &us, &n, &answer); err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			now := began + us*1000
			passes := !l.Decide(&st, now, 1, cell.Peek).Limited
			if passes {
				l.Decide(&st, now, n, cell.Force)
				passed++
			}
			calls++
			if passes != (answer == '+') {
				t.Errorf("%s: %s there, %v here", l, word, passes)
			}
		}
	}
	if calls < 300 || passed < calls/5 || passed > calls*4/5 {
		t.Errorf("%d of %d calls passed", passed, calls)
	}
}
