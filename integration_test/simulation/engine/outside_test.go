package engine

import (
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/persistence"
	"celld/resp"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
	"celld/store/memory"
)

// The outside model knows nothing of celld's code: it computes what limits answer from the words of a limit, as the pages say.
// What was used of a limit is a number that flows back, or that leaves with its time.

// outside is what is used under each key, of each limit by its algorithm, period and name.
type outside map[string]*usage

// usage is what is used of a limit, as the last call that changed it has left it.
type usage struct {
	limit outLimit
	debt  *big.Int // gcra: ns until all has flowed back, at atNS
	atNS  int64
	calls []taken // window, log: what counts, the oldest first
}

type taken struct{ atNS, cost int64 }

// outLimit is a limit as it is written.
type outLimit struct {
	count, periodNS, burst int64
	algo, name             string
}

func readWords(text string) (l outLimit) {
	head, options, _ := strings.Cut(text, ",")
	count, period, _ := strings.Cut(head, "/")
	l.count, _ = strconv.ParseInt(count, 10, 64)
	d, _ := time.ParseDuration(period)
	l.periodNS, l.burst, l.algo = int64(d), l.count, "gcra"
	for _, option := range strings.Split(options, ",") {
		switch name, value, _ := strings.Cut(option, "="); name {
		case "burst":
			l.burst, _ = strconv.ParseInt(value, 10, 64)
		case "algo":
			l.algo = value
		case "name":
			l.name = value
		}
	}
	return l
}

// intervalNS is what a call costs, in whole ns, so that no more than the rate passes.
func (l outLimit) intervalNS() int64 { return (l.periodNS + l.count - 1) / l.count }

func (l outLimit) most() int64 {
	if l.algo == "gcra" {
		return l.burst
	}
	return l.count
}

// now is the usage at an instant under the limit l: what was used stays used, as a number.
func (u *usage) now(l outLimit, nowNS int64) *usage {
	n := &usage{limit: l, debt: new(big.Int), atNS: nowNS, calls: slices.Clone(u.calls)}
	if u.debt != nil {
		n.debt.Sub(u.debt, big.NewInt(nowNS-u.atNS))
		if n.debt.Sign() < 0 {
			n.debt.SetInt64(0)
		}
		if was := u.limit.intervalNS(); was != l.intervalNS() {
			n.debt.Mul(n.debt, big.NewInt(l.intervalNS())) // in intervals as much as before, rounded up to whole ns
			n.debt.Add(n.debt, big.NewInt(was-1)).Div(n.debt, big.NewInt(was))
		}
	}
	switch {
	case l.algo == "window" && len(n.calls) > 0 && n.calls[0].atNS+l.periodNS <= nowNS: // the window that began with the first has ended
		n.calls = nil
	case l.algo == "log":
		n.calls = slices.DeleteFunc(n.calls, func(c taken) bool { return c.atNS+l.periodNS <= nowNS })
	}
	return n
}

func (u *usage) used() (sum int64) {
	for _, c := range u.calls {
		sum += c.cost
	}
	return sum
}

// answer is a limit's: limited, limit, remaining, retry after and reset after, both in µs.
type answer [5]int64

func (u *usage) answer(cost int64) (a answer) {
	l := u.limit
	waitNS := int64(0)
	switch {
	case cost > l.most():
		waitNS = -1
	case l.algo == "gcra":
		waitNS = max(0, u.debt.Int64()+(cost-l.burst)*l.intervalNS())
	case u.used()+cost <= l.count:
	case l.algo == "window":
		waitNS = u.calls[0].atNS + l.periodNS - u.atNS
	default:
		left := u.used()
		for _, c := range u.calls {
			if left -= c.cost; left+cost <= l.count {
				waitNS = c.atNS + l.periodNS - u.atNS
				break
			}
		}
	}
	if cost == 0 {
		waitNS = 0
	}
	a = answer{0, l.most(), u.left(), -1, micros(u.endsNS())}
	if waitNS != 0 {
		a[0], a[3] = 1, micros(waitNS)
	}
	return a
}

func (u *usage) left() int64 {
	if u.limit.algo == "gcra" {
		return max(0, (u.limit.burst*u.limit.intervalNS()-u.debt.Int64())/u.limit.intervalNS())
	}
	return max(0, u.limit.count-u.used())
}

// endsNS is how long something is used.
func (u *usage) endsNS() int64 {
	switch {
	case u.limit.algo == "gcra":
		return u.debt.Int64()
	case len(u.calls) == 0:
		return 0
	case u.limit.algo == "window":
		return u.calls[0].atNS + u.limit.periodNS - u.atNS
	}
	return u.calls[len(u.calls)-1].atNS + u.limit.periodNS - u.atNS
}

// micros rounds up; -1 is never.
func micros(ns int64) int64 {
	if ns < 0 {
		return -1
	}
	return (ns + 999) / 1000
}

func (u *usage) take(cost int64) {
	n := len(u.calls)
	switch {
	case u.limit.algo == "gcra":
		u.debt.Add(u.debt, big.NewInt(cost*u.limit.intervalNS()))
	case n > 0 && u.calls[n-1].atNS == u.atNS:
		u.calls[n-1].cost += cost
	default:
		u.calls = append(u.calls, taken{u.atNS, cost})
		if u.limit.algo == "log" && int64(n) >= u.limit.count { // by force: the two oldest of a log become one at the time of the younger
			u.calls[1].cost += u.calls[0].cost
			u.calls = u.calls[1:]
		}
	}
}

// give gives back, the latest first, and returns how much that was.
func (u *usage) give(n int64) (given int64) {
	if u.limit.algo == "gcra" {
		interval := big.NewInt(u.limit.intervalNS())
		used := new(big.Int).Add(u.debt, big.NewInt(u.limit.intervalNS()-1))
		given = min(n, used.Div(used, interval).Int64())
		if u.debt.Sub(u.debt, new(big.Int).Mul(interval, big.NewInt(n))); u.debt.Sign() < 0 {
			u.debt.SetInt64(0)
		}
		return given
	}
	for i := len(u.calls) - 1; i >= 0 && given < n; i-- {
		some := min(u.calls[i].cost, n-given)
		u.calls[i].cost -= some
		given += some
	}
	u.calls = slices.DeleteFunc(u.calls, func(c taken) bool { return c.cost == 0 && u.limit.algo == "log" })
	if u.used() == 0 {
		u.calls = nil
	}
	return given
}

func (o outside) of(key string, l outLimit) string {
	return fmt.Sprint(key, " ", l.algo, " ", l.periodNS, " ", l.name)
}

// usage is what is used of a limit now.
func (o outside) usage(key string, l outLimit, nowNS int64) *usage {
	u := o[o.of(key, l)]
	if u == nil {
		u = &usage{limit: l}
	}
	return u.now(l, nowNS)
}

// asked is a call as it is drawn.
type outsideCall struct {
	key    string // as the model knows it
	limits []outLimit
	costs  map[string]int64 // by name; "": of the others
	mode   string
	give   int64
}

func (c *outsideCall) costOf(l outLimit) int64 {
	if cost, named := c.costs[l.name]; named {
		return cost
	}
	return c.costs[""]
}

// take answers a call: what each limit says, and what was granted.
func (o outside) take(c *outsideCall, nowNS int64) (all []answer, granted int64) {
	all = make([]answer, len(c.limits))
	limited, takes := false, false
	states := make([]*usage, len(c.limits))
	for i, l := range c.limits {
		states[i] = o.usage(c.key, l, nowNS)
		all[i] = states[i].answer(c.costOf(l))
		limited = limited || all[i][0] == 1
		takes = takes || c.costOf(l) > 0
	}
	if c.mode == "FORCE" {
		limited = false
	}
	if c.mode == "PEEK" || !takes && c.costs[""] == 0 {
		return all, 0
	}
	for i, l := range c.limits {
		if c.costOf(l) == 0 { // as PEEK, it changes nothing
			continue
		}
		if u := states[i]; !limited {
			u.take(c.costOf(l))
			all[i] = u.answer(0)
		}
		if o[o.of(c.key, l)] = states[i]; states[i].endsNS() == 0 {
			delete(o, o.of(c.key, l))
		}
	}
	if limited {
		return all, 0
	}
	return all, c.costs[""]
}

// fleet are servers with the same limits, and the model of these.
type fleet struct {
	servers []*resp.Server
	restart func() // nil: they have no files
	model   outside
}

var outsideLimits = []string{"%d/1s", "%d/1s,name=x", "%d/7s,burst=3", "%d/1m,name=y", "%d/3s,algo=window", "%d/3s,algo=window,name=x",
	"%d/2s,algo=log", "%d/2s,algo=log,name=y", "%d/11s,algo=window,name=y"}

// TestOutsideModel draws calls of changing limits, and compares what a celld in memory that is restarted answers, and two that share an
// engine, with the outside model.
func TestOutsideModel(t *testing.T) {
	t.Parallel()
	r := celldtest.NewRand(t)
	most := 6_000
	if celldtest.Thorough {
		most = 200_000
	}
	for said := 0; said < most && !t.Failed(); said += 2 * 1000 {
		synctest.Test(t, func(t *testing.T) {
			e := enginetest.Start(t, enginetest.Options{})
			shared := &fleet{model: outside{}, servers: []*resp.Server{engineSide(t, e).server, engineSide(t, e).server}}
			seed := [2]uint64{r.Uint64(), r.Uint64()}
			for _, f := range []*fleet{keptFleet(t), shared} {
				f.converse(t, rand.New(rand.NewPCG(seed[0], seed[1])), 1000)
			}
		})
	}
}

// keptFleet is one server in memory, with an append-only file that it reads at each restart.
func keptFleet(t *testing.T) *fleet {
	f, folder := &fleet{model: outside{}, servers: make([]*resp.Server, 1)}, t.TempDir()
	var disk *persistence.Disk
	stop := func() {
		disk.Stop()
		if err := disk.Close(disk.SaveAtExit()); err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		cfg := sessiontest.Settings(t, "dir", folder, "appendonly", "yes")
		var keys *memory.Store
		keys, disk = sessiontest.Keep(memory.Options{Now: unixNano}, cfg, &sessiontest.Disk{}, unixNano, slog.New(slog.DiscardHandler))
		read, err := resp.ReadFiles(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f.servers[0] = resp.NewServer(resp.Options{Config: cfg, Files: read, Store: keys, Persistence: disk, Clock: unixNano,
			Scripts: sessiontest.Scripts})
		if _, err := disk.Load(f.servers[0].Door.Replay()); err != nil {
			t.Fatal(err)
		}
		if err := disk.Start(nil, nil); err != nil {
			t.Fatal(err)
		}
		f.servers[0].Door.Gate.Set(gate.Loading, false)
	}
	start()
	t.Cleanup(func() { stop() })
	f.restart = func() {
		stop()
		start()
	}
	return f
}

// converse says calls to the servers, and compares each answer.
func (f *fleet) converse(t *testing.T, r *rand.Rand, calls int) {
	var told []string
	plans := map[string][]outLimit{}
	say := func(words ...string) string {
		at := r.IntN(2) % len(f.servers)
		reply := sessiontest.Do(f.servers[at].Sessions(), words...)
		told = append(told, fmt.Sprintf("%s to %d: %q %q", time.Now().Format("05.000000000"), at, words, reply))
		return reply
	}
	for range calls {
		celldtest.Pass(time.Duration(pick64(r, 0, 0, 1, 999, 1e6, 143e6, 331e6, 1e9, 2999e6)))
		if r.IntN(200) == 0 && f.restart != nil {
			f.restart()
			told = append(told, "restart")
		}
		if r.IntN(12) == 0 { // a plan is set, or changed
			name := pick(r, "p", "q")
			texts := drawLimits(r)
			say(append([]string{"CL.POLICY", "SET", name}, texts...)...)
			f.model.change(name, plans[name], texts)
			plans[name] = nil
			for _, text := range texts {
				plans[name] = append(plans[name], readWords(text))
			}
			celldtest.Pass(3 * time.Second) // until all instances know
			continue
		}
		c, args := drawOutside(r, plans)
		reply := say(args...)
		nowNS := unixNano()
		want := ""
		if c.give > 0 {
			given := int64(0)
			for _, l := range c.limits {
				if _, named := c.costs[l.name]; named || len(c.costs) == 0 {
					u := f.model.usage(c.key, l, nowNS)
					if given = max(given, u.give(c.give)); f.model[f.model.of(c.key, l)] != nil {
						f.model[f.model.of(c.key, l)] = u
					}
				}
			}
			want = fmt.Sprintf(":%d\r\n", given)
		} else {
			all, granted := f.model.take(c, nowNS)
			reply = reply[strings.Index(reply, "\r\n")+2:]
			numbers := strings.Split(strings.ReplaceAll(reply, ":", ""), "\r\n")
			want = fmt.Sprintf("%v %v", granted, all)
			var got []answer
			for i := 9; i+4 < len(numbers); i += 6 { // after 7 numbers, and the head of the list and of the first
				var a answer
				for j := range a {
					a[j], _ = strconv.ParseInt(numbers[i+j], 10, 64)
				}
				got = append(got, a)
			}
			reply = fmt.Sprintf("%v %v", numbers[min(5, len(numbers)-1)], got)
		}
		if reply != want {
			t.Errorf("%s\nanswered %s\nwant     %s", strings.Join(told[max(0, len(told)-20):], "\n"), reply, want)
			return
		}
	}
}

// change makes the limits of a plan others. What was used of one that is gone is forgotten.
func (o outside) change(name string, was []outLimit, texts []string) {
	var stay []string
	for _, text := range texts {
		stay = append(stay, o.of("", readWords(text)))
	}
	for _, l := range was {
		if !slices.Contains(stay, o.of("", l)) {
			for _, key := range []string{"a", "b"} {
				delete(o, o.of(key+"@"+name, l))
			}
		}
	}
}

// drawLimits draws limits that do not share a state.
func drawLimits(r *rand.Rand) (texts []string) {
	for _, at := range r.Perm(len(outsideLimits))[:1+r.IntN(3)] {
		texts = append(texts, fmt.Sprintf(outsideLimits[at], pick64(r, 1, 2, 3, 5, 8, 9, 1000)))
	}
	return texts
}

// drawOutside draws a call and its words.
func drawOutside(r *rand.Rand, plans map[string][]outLimit) (c *outsideCall, args []string) {
	key := pick(r, "a", "b")
	c = &outsideCall{key: key + "@", costs: map[string]int64{}}
	args = []string{"CL.TAKE", "key:" + key}
	if name := pick(r, "p", "q"); plans[name] != nil && r.IntN(2) == 0 {
		c.key, c.limits, args = key+"@"+name, plans[name], append(args, "@"+name)
	} else {
		texts := drawLimits(r)
		args = append(args, texts...)
		for _, text := range texts {
			c.limits = append(c.limits, readWords(text))
		}
	}
	names := []string{}
	for _, l := range c.limits {
		if l.name != "" && !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	if r.IntN(8) == 0 && (len(args) == 3) {
		c.give = pick64(r, 1, 2, 9)
		args[0] = "CL.GIVE"
		args = append(args, fmt.Sprint(c.give))
		if len(names) > 0 && r.IntN(2) == 0 {
			c.costs[names[0]] = c.give
			args = append(args, "OF", names[0])
		}
		return c, args
	}
	c.costs[""] = 1
	if r.IntN(2) == 0 {
		c.costs[""] = pick64(r, 0, 2, 3, 7)
		args = append(args, "COST", fmt.Sprint(c.costs[""]))
	}
	for _, name := range names {
		if r.IntN(2) == 0 {
			c.costs[name] = pick64(r, 0, 1, 2, 4)
			args = append(args, "COST", fmt.Sprint(c.costs[name]), "OF", name)
		}
	}
	if c.mode = pick(r, "", "", "", "", "", "PEEK", "FORCE"); c.mode != "" {
		args = append(args, c.mode)
	}
	return c, append(args, "FULL", "US")
}
