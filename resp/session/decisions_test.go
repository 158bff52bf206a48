package session

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"celld/resp/decisions"
	"celld/resp/session/sessiontest"
)

// askAll sends, 60 times and until there are enough, random pipelines, of like calls or of different ones, some of them as transactions,
// and counts the replies.
func askAll(c sessiontest.Client, rng *rand.Rand, enough func() bool) (n decisions.Counts, err error) {
	for rounds := 0; rounds < 60 || !enough(); rounds++ {
		var asks []ask
		for len(asks) < 1+rng.IntN(40) {
			a := anyAsk(rng)
			for range 1 + rng.IntN(8) {
				asks = append(asks, a)
			}
		}
		var raw strings.Builder
		inTx := rng.IntN(4) == 0
		if inTx {
			raw.WriteString("MULTI\r\n")
		}
		for _, a := range asks {
			raw.WriteString(sessiontest.Frame(a.words...))
		}
		if inTx {
			raw.WriteString("EXEC\r\n")
		}
		if _, err := io.WriteString(c, raw.String()); err != nil {
			return n, err
		}
		if inTx {
			for range 1 + len(asks) {
				if _, err := sessiontest.Words(c.Reader); err != nil {
					return n, err
				}
			}
			if _, err := c.ReadString('\n'); err != nil { // the array's header
				return n, err
			}
		}
		for i := range asks {
			reply, err := sessiontest.Words(c.Reader)
			if err != nil {
				return n, err
			}
			asks[i].count(&n, reply)
		}
	}
	return n, nil
}

// decisionNames are the fields of INFO.
var decisionNames = [...]string{
	decisions.ThrottleAllowed: "throttle_allowed", decisions.ThrottleLimited: "throttle_limited", decisions.TakeAllowed: "take_allowed",
	decisions.TakeLimited: "take_limited", decisions.RuleDenied: "rule_denied", decisions.ShadowLimited: "shadow_limited",
	decisions.ShadowAllowed: "shadow_allowed",
}

// infoDecisions are the counts that INFO has.
func infoDecisions(t *testing.T, c sessiontest.Client) (n decisions.Counts) {
	t.Helper()
	c.Send(sessiontest.Frame("INFO", "stats"))
	info, err := sessiontest.Words(c.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(info[0], "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		for kind, of := range decisionNames {
			if name == of {
				n[kind], _ = strconv.ParseInt(value, 10, 64)
			}
		}
	}
	return n
}

// INFO counts what clients have been told, no more and no less, also where the disk refuses some of it.
func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, srv *Service, addr string, disk *sessiontest.Disk) {
		c := sessiontest.Dial(t, addr)
		c.Ask("CL.POLICY SET p 7/1m\r\nCL.RULE ADD DENY bad:*\r\nCL.RULE ADD ALLOW good:*\r\nCONFIG RESETSTAT\r\n",
			":1\r\n:1\r\n:1\r\n+OK\r\n")
		if n := infoDecisions(t, c); n != (decisions.Counts{}) {
			t.Fatalf("after RESETSTAT %v", n)
		}
		var all decisions.Counts
		var mu sync.Mutex
		var wg sync.WaitGroup
		var stop atomic.Bool
		for seed := range uint64(4) {
			conn := sessiontest.Dial(t, addr)
			wg.Go(func() {
				n, err := askAll(conn, rand.New(rand.NewPCG(1, seed)), stop.Load)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for kind := range n {
					all[kind] += n[kind]
				}
			})
		}
		for _, kind := range []decisions.Kind{decisions.ThrottleAllowed, decisions.ThrottleLimited, decisions.TakeAllowed,
			decisions.TakeLimited, decisions.RuleDenied} {
			eventually(t, "count "+decisionNames[kind], func() bool { return srv.Decisions.Sum()[kind] > 0 })
		}
		for range 2 {
			if disk != nil {
				disk.Full.Store(true)
				eventually(t, "find the disk full", func() bool { return srv.Persist.Refusal() != nil })
				disk.Full.Store(false)
				eventually(t, "write though the disk has space again", func() bool { return srv.Persist.Refusal() == nil })
			}
		}
		stop.Store(true)
		wg.Wait()
		got := infoDecisions(t, c)
		if got != all {
			t.Errorf("INFO %v: %v, the clients saw %v", decisionNames, got, all)
		}
		c.Ask("CL.RULE DEL DENY bad:*\r\nCL.RULE DEL ALLOW good:*\r\nCL.POLICY DEL p\r\nFLUSHALL\r\n", ":1\r\n:1\r\n:1\r\n+OK\r\n")
	}
	t.Run("in memory", func(t *testing.T) {
		eachCarrier(t, func(t *testing.T, srv *Service, addr string) { check(t, srv, addr, nil) })
	})
	t.Run("on a disk that is full now and then", func(t *testing.T) {
		disk := &sessiontest.Disk{}
		eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) { check(t, srv, addr, disk) })
	})
}

// Each call is counted once, whatever it asks for. A call that only looks, gives back or fails is not counted.
func TestWhatIsADecision(t *testing.T) {
	w := newWorld(t, "slowlog-log-slower-than", "-1")
	p := w.connect()
	p.do("CL.RULE", "ADD", "DENY", "bad")
	want := func(command string, change ...decisions.Kind) {
		t.Helper()
		before := w.Decisions.Sum()
		got := p.send(sessiontest.Frame(strings.Fields(command)...))
		for _, kind := range change {
			before[kind]++
		}
		if after := w.Decisions.Sum(); after != before {
			t.Errorf("%s: %q, %v; want %v", command, got, after, before)
		}
	}
	want("CL.THROTTLE t 0 1 60", decisions.ThrottleAllowed)
	want("CL.THROTTLE t 0 1 60", decisions.ThrottleLimited)
	want("CL.THROTTLE t 0 1 60 0")
	want("CL.THROTTLE t 0 1 60 -1")
	want("CL.THROTTLE u 0 1 60", decisions.ThrottleAllowed)
	want("CL.THROTTLE none -1 1 60", decisions.ThrottleLimited)
	want("CL.THROTTLE bad 0 1 60", decisions.ThrottleLimited, decisions.RuleDenied)
	want("CL.THROTTLE bad 0 1 60 0")
	want("CL.TAKE k 1/1h 5/1h,algo=log", decisions.TakeAllowed)
	want("CL.TAKE k 1/1h 5/1h,algo=log", decisions.TakeLimited)
	want("CL.TAKE k 1/1h FORCE", decisions.TakeAllowed)
	want("CL.TAKE k 1/1h PEEK")
	want("CL.TAKE k 1/1h COST 0")
	want("CL.TAKE u 1/1h")
	want("CL.TAKE bad 1/1h 2/1h", decisions.TakeLimited, decisions.RuleDenied)
	want("CL.TAKE s 1/1h,shadow", decisions.TakeAllowed, decisions.ShadowAllowed)
	want("CL.TAKE s 1/1h,shadow", decisions.TakeAllowed, decisions.ShadowLimited)
	want("CL.TAKE s 1/1h,shadow PEEK")
	want("CL.MTAKE 2 m 1/1h n 1/1h", decisions.TakeAllowed)
	want("CL.MTAKE 2 m 1/1h bad 1/1h", decisions.TakeLimited, decisions.RuleDenied)
	want("CL.GIVE m 1/1h 1")
	want("CL.POLICY SET p 1/1h")
	want("CL.THROTTLE q @p", decisions.ThrottleAllowed)
	want("CL.THROTTLE q @p", decisions.ThrottleLimited)
	want("CL.THROTTLE q @p 0")
	want("CL.THROTTLE q @p -1")
	p.want("MULTI", "+OK\r\n")
	want("CL.THROTTLE q @p")
	want("CL.TAKE x 1/1h")
	want("EXEC", decisions.ThrottleAllowed, decisions.TakeAllowed)
	got := p.send(sessiontest.Frame("CL.THROTTLE", "i", "0", "1", "1") + sessiontest.Frame("INFO", "stats"))
	if !strings.Contains(got, fmt.Sprintf("\nthrottle_allowed:%d\r\n", w.Decisions.Sum()[decisions.ThrottleAllowed])) {
		t.Error("INFO leaves out what stands before it in a pipeline")
	}
}

// ask is a call, and how its reply counts.
type ask struct {
	words   []string
	decides bool
	allowed decisions.Kind
	limitAt []int // where in the reply limits stand, of which a rule that denies makes 0
}

// count counts a reply, as its words without the nesting.
func (a *ask) count(n *decisions.Counts, reply []string) {
	switch {
	case !a.decides || reply[0][0] == '-':
		return
	case reply[0] == ":0":
		n[a.allowed]++
		return
	}
	n[a.allowed+1]++
	for _, at := range a.limitAt {
		if reply[at] == ":0" {
			n[decisions.RuleDenied]++
			return
		}
	}
}

// anyAsk is one of all kinds of calls.
func anyAsk(rng *rand.Rand) ask {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	key, other, limit := pick("a", "b", "bad:c", "good:d"), pick("e", "bad:f"),
		pick("5/1h", "5/1s,algo=log", "9/1h,algo=slide,buckets=3", "@p")
	quantity := pick("-1", "0", "1", "2", "3")
	takes := quantity[0] > '0'
	options, looks := pick("", "", "COST 2", "COST 9 UPTO", "FORCE"), false
	if rng.IntN(5) == 0 {
		options, looks = pick("PEEK", "COST 0", "COST 0 FORCE"), true
	}
	call := func(decides bool, allowed decisions.Kind, limitAt []int, words ...string) ask {
		return ask{strings.Fields(strings.Join(words, " ")), decides, allowed, limitAt}
	}
	switch rng.IntN(16) {
	case 0:
		return call(false, 0, nil, "PING")
	case 1:
		return call(false, 0, nil, "CL.GIVE", key, limit, "1")
	case 2:
		return call(!looks, decisions.TakeAllowed, []int{1}, "CL.TAKE throttled 5/1h", options) // WRONGTYPE
	case 3:
		return call(true, decisions.ThrottleAllowed, nil, "CL.THROTTLE", key, pick("x", "1"), "1 0")
	case 4, 5:
		return call(takes, decisions.ThrottleAllowed, []int{1}, "CL.THROTTLE", key, "@p", quantity)
	case 6, 7:
		return call(!looks, decisions.TakeAllowed, []int{6, 11}, "CL.MTAKE 2", key, limit, other, "3/1h", options)
	case 8, 9:
		return call(!looks, decisions.TakeAllowed, []int{1}, "CL.TAKE", key, limit, "1000/1d", options)
	case 10, 11, 12:
		return call(!looks, decisions.TakeAllowed, []int{1}, "CL.TAKE", key, limit, options)
	case 13:
		return call(takes, decisions.ThrottleAllowed, []int{1}, "CL.THROTTLE", pick("throttled", "bad:t"), "4 5 3600", quantity)
	}
	return call(true, decisions.ThrottleAllowed, []int{1}, "CL.THROTTLE", pick("throttled", "bad:t"), "4 5 3600")
}
