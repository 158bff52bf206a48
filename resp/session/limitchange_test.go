package session

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/resp/session/sessiontest"
)

// changedLimits are what the policy p becomes, and kinds of one literal.
var changedLimits = []string{
	"5/1s", "5/1h", "1/1s,burst=3", "36000/1h,burst=5", "5/1s,algo=window", "5/10s,algo=slide", "6/10s,algo=slide,buckets=5",
	"5/1s,algo=log", "3/1h,algo=log", "4/1d,algo=window,align=clock", "5/1m,block=2s", "5/10s,warmup=8s", "5/10s,warmup=20s,cold=2",
}

// ask makes a call under two keys in one packet, which the server takes as a batch, and returns the integers of their replies.
func (p *peer) ask(t rapid.TB, words ...string) (replies [2][]int64) {
	t.Helper()
	var raw string
	for _, key := range []string{"key", "twin"} {
		raw += sessiontest.Frame(append([]string{words[0], key}, words[1:]...)...)
	}
	each := strings.Split(strings.TrimPrefix(p.send(raw), "*"), "*")
	for i, reply := range each {
		for _, line := range strings.Split(strings.TrimSuffix(reply, "\r\n"), "\r\n")[1:] {
			n, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64)
			if err != nil {
				t.Fatalf("%v: %q", words, reply)
			}
			replies[i] = append(replies[i], n)
		}
	}
	if len(each) != 2 || len(replies[0]) < 5 {
		t.Fatalf("%v: %q", words, each)
	}
	return replies
}

// A caller that sleeps as long as it is told passes then, whatever its policy was before, and whether or not it peeks meanwhile.
// CL.TAKE tells microseconds: 1 µs earlier it is limited. CL.THROTTLE tells seconds, of which less than 1 ms is cut off.
func TestRetryAfterIsTrueWhenAPolicyChanges(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		w := newWorld(tt)
		p := w.connect()
		var script []string
		change := func() {
			limit := rapid.SampledFrom(changedLimits).Draw(t, "limit")
			script = append(script, "set "+limit)
			p.do("CL.POLICY", "SET", "p", limit)
		}
		ask := func(words ...string) [2][]int64 {
			got := p.ask(t, words...)
			script = append(script, fmt.Sprint((w.nowNS-sessiontest.StartNS)/1000, " µs ", words, got))
			if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
				t.Fatalf("two answers: %v", script)
			}
			return got
		}
		call, unit, early, late := []string{"CL.TAKE", "@p", "US"}, int64(1000), int64(1000), int64(0)
		if rapid.Bool().Draw(t, "CL.THROTTLE") {
			call, unit, early, late = []string{"CL.THROTTLE", "@p"}, 1e9, 1e9, 1e6
		}
		change()
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			ask(call...)
			if rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
				change()
			}
			w.nowNS += rapid.SampledFrom([]int64{0, 0, 0, 1e3, 2e8, 1e9, 6e10}).Draw(t, "ns")
		}
		for range 5 {
			if got := ask(call...)[0]; got[0] == 0 {
				continue
			} else if sleep := got[3] * unit; sleep > early {
				w.nowNS += sleep - early
				peek := []string{"CL.TAKE", "@p", "PEEK"}
				if got := ask(peek...); got[0][0] == 0 {
					t.Fatalf("passes too soon: %v", script)
				}
				w.nowNS += early + late
			} else {
				w.nowNS += sleep + late
			}
			if got := ask(call...); got[0][0] == 1 {
				t.Fatalf("is limited after the time that it was told: %v", script)
			}
		}
	})
}

// A key that is used up under 10/1h goes by another limit from its first call on, denied or not.
func TestThrottleGoesByAPolicyThatHasChanged(t *testing.T) {
	for _, test := range []struct {
		from, to string
		told     int64
	}{{"10/1h", "3600/1h,burst=10", 1}, {"3600/1h,burst=10", "10/1h", 360}, {"10/1d,algo=log", "5/1d,algo=log", 86400}} {
		w := newWorld(t)
		p := w.connect()
		p.do("CL.POLICY", "SET", "p", test.from)
		p.ask(t, "CL.THROTTLE", "@p", "10")
		p.do("CL.POLICY", "SET", "p", test.to)
		for range 10 {
			if got := p.ask(t, "CL.THROTTLE", "@p")[0]; got[0] != 1 {
				t.Errorf("%s to %s: passes %d ms after the change: %v", test.from, test.to, (w.nowNS-sessiontest.StartNS)/1e6, got)
			} else if w.nowNS == sessiontest.StartNS && got[3] != test.told {
				t.Errorf("%s to %s: %v, want to be told %d s", test.from, test.to, got, test.told)
			}
			w.nowNS += test.told * 1e8 * 99 / 100
			if test.told == 1 && strings.HasSuffix(test.to, "1s") { // whose wait is 100 ms, told as 1 s
				break
			}
		}
		w.nowNS = sessiontest.StartNS + test.told*1e9
		if got := p.ask(t, "CL.THROTTLE", "@p")[0]; got[0] != 0 {
			t.Errorf("%s to %s: is limited after the %d s that it was told: %v", test.from, test.to, test.told, got)
		}
	}
}
