//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// onEngine is a load on limits that a Redis keeps, the engine: through celld, or by callers of redis_rate. Each step has a new engine.
type onEngine struct {
	processes int // of celld, which one process asks by plain sockets, or of callers of redis_rate
	callers   int // in all
	keys      int
	limit     limitWords
	limited   bool   // the limit denies; else every call must pass
	inUse     bool   // all keys have had a call before
	perSecond int    // of all callers; 0: as fast as they are answered
	ahead     int    // --store-ahead of celld, in ms
	take      string // celld is asked by CL.TAKE for these limits, which are as large; empty: by CL.THROTTLE
	duration  time.Duration
}

const (
	engineCPU    metric = "engine_cpu_us_per_decision"
	engineAsked  metric = "engine_commands_per_decision"
	callersCPU   metric = "callers_cpu_us_per_decision"
	allowedShare metric = "allowed_over_permitted"
)

var (
	// aMinute ends 2 s after a call: of a million keys, few are in use when they are asked.
	aMinute = limitWords{15, 30, 60}
	// mounting keeps a key in use that is asked more than ten times a second, and lets all pass for hours.
	mounting = limitWords{1_000_000, 10, 1}
	// hot lets only a part pass of what one key can be asked.
	hot = limitWords{4_999, 10_000, 1}
	// warm is the same where a key is asked less often.
	warm = limitWords{999, 2_000, 1}
	// wide lets all pass, and never has little left.
	wide = limitWords{999_999, 1_000_000, 60}
	// slow is a hundredth of what each of 100 keys is asked.
	slow = limitWords{0, 1, 1}
)

var engineRows = []row{
	{name: "engine-1m", title: "1M keys, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1_000_000, limit: aMinute}},
	{name: "engine-1m-used", title: "1M keys in use, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1_000_000, limit: limitWords{15, 30, 3600}, inUse: true}},
	{name: "engine-1m-load", title: "1M keys, 10,000/s of 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1_000_000, limit: aMinute, perSecond: 10_000}},
	{name: "engine-1k", title: "1,000 keys in use, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1000, limit: mounting}},
	{name: "engine-hot-1", title: "one key, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1, limit: hot, limited: true}},
	{name: "engine-hot-20", title: "one key, 20 processes with 50 callers each", work: onEngine{processes: 20, callers: 1000, keys: 1, limit: hot, limited: true}},
	{name: "engine-hot-20-load", title: "one key, 6,000/s of 20 processes with 50 callers each", work: onEngine{processes: 20, callers: 1000, keys: 1, limit: warm, limited: true, perSecond: 6_000}},
	{name: "engine-denied", title: "100 keys at 100 × their rate, 10,000/s of 50 callers", work: onEngine{processes: 1, callers: 50, keys: 100, limit: slow, limited: true, perSecond: 10_000}},
	{name: "ahead-1", title: "one key, 3,000/s of 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1, limit: wide, perSecond: 3_000, ahead: 20}},
	{name: "ahead-1-window", title: "the same with a window", work: onEngine{processes: 1, callers: 50, keys: 1, limit: wide, perSecond: 3_000, ahead: 20, take: "1000000/1m,algo=window"}},
	{name: "ahead-1-three", title: "the same with three limits", work: onEngine{processes: 1, callers: 50, keys: 1, limit: wide, perSecond: 3_000, ahead: 20, take: "1000000/1m 2000000/1h,algo=window 1000000/1m,algo=slide"}},
	{name: "ahead-hot-1", title: "one key, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 1, limit: hot, limited: true, ahead: 20}},
	{name: "ahead-8", title: "one key, 250/s each of 8 processes", work: onEngine{processes: 8, callers: 48, keys: 1, limit: wide, perSecond: 2_000, ahead: 20}},
	{name: "ahead-8-window", title: "the same with a window", work: onEngine{processes: 8, callers: 48, keys: 1, limit: wide, perSecond: 2_000, ahead: 20, take: "1000000/1m,algo=window"}},
	{name: "ahead-20", title: "one key, 6,000/s of 20 processes with 50 callers each", work: onEngine{processes: 20, callers: 1000, keys: 1, limit: warm, limited: true, perSecond: 6_000, ahead: 20, duration: 10 * time.Second}},
	{name: "ahead-20-100ms", title: "the same, 100 ms ahead", work: onEngine{processes: 20, callers: 1000, keys: 1, limit: warm, limited: true, perSecond: 6_000, ahead: 100, duration: 10 * time.Second}},
	{name: "ahead-100", title: "100 keys, 3,000/s of 50 callers, 100 ms ahead", work: onEngine{processes: 1, callers: 50, keys: 100, limit: wide, perSecond: 3_000, ahead: 100}},
	{name: "engine-new-window", title: "100,000 new keys with a window, 50 callers", work: onEngine{processes: 1, callers: 50, keys: 100_000, limit: wide, perSecond: 5_000, take: "1000000/1m,algo=window"}},
	{name: "engine-added", title: "1,000 keys in use, 10,000/s of 50 callers", work: added{onEngine{processes: 1, callers: 50, keys: 1000, limit: mounting, perSecond: 10_000}}},
}

var engineGoals = []goal{
	{row: "engine-1m", metric: engineCPU, peer: "redis-rate", atMost: 0.4},
	{row: "engine-1k", metric: engineCPU, peer: "redis-rate", atMost: 0.55},
	{row: "engine-hot-1", metric: engineCPU, peer: "redis-rate", atMost: 0.1},
	{row: "engine-hot-20", metric: engineCPU, peer: "redis-rate", atMost: 0.05},
	{row: "engine-denied", metric: engineCPU, peer: "redis-rate", atMost: 0.13},
	{row: "engine-1m", metric: p50, peer: "redis-rate", atMost: 0.65},
	{row: "engine-hot-20", metric: p99, peer: "redis-rate", atMost: 0.1},
	{row: "ahead-1", metric: engineCPU, peer: "redis-rate", atMost: 0.1},
	{row: "ahead-1-window", metric: engineCPU, peer: "redis-rate", atMost: 0.1},
	{row: "ahead-1-three", metric: engineCPU, peer: "redis-rate", atMost: 0.1},
	{row: "ahead-1", metric: engineAsked, atMost: 0.05},
	{row: "ahead-1", metric: p50, peer: "redis-rate", atMost: 0.4},
	{row: "ahead-hot-1", metric: engineCPU, peer: "redis-rate", atMost: 0.05},
	{row: "ahead-8", metric: engineCPU, peer: "redis-rate", atMost: 0.45},
	{row: "ahead-8-window", metric: engineCPU, peer: "redis-rate", atMost: 0.45},
	{row: "ahead-8", metric: engineAsked, atMost: 0.3},
	{row: "ahead-8-window", metric: engineAsked, atMost: 0.3},
	{row: "ahead-20", metric: engineCPU, peer: "redis-rate", atMost: 0.4},
	{row: "ahead-20-100ms", metric: engineCPU, peer: "redis-rate", atMost: 0.12},
	{row: "ahead-100", metric: engineCPU, peer: "redis-rate", atMost: 0.4},
	{row: "engine-new-window", metric: engineCPU, peer: "redis-rate", atMost: 0.8},
	{row: "ahead-hot-1", metric: allowedShare, atLeast: 0.98},
	{row: "ahead-20", metric: allowedShare, atLeast: 0.98},
	{row: "engine-hot-1", metric: allowedShare, atLeast: 0.98},
	{row: "engine-hot-20", metric: allowedShare, atLeast: 0.98},
	{row: "engine-added", metric: addedP99, atMost: 0.5},
}

const engineDuration = 4 * time.Second

func (w onEngine) fits(p *peer) bool { return p.isCelld() || p.isLibrary() }

func (w onEngine) quick() work {
	w.duration = engineDuration / 4
	return w
}

func (w onEngine) lasts() time.Duration {
	if w.duration > 0 {
		return w.duration
	}
	return engineDuration
}

func (w onEngine) seconds(*peer) float64 {
	estimate := 1 + w.lasts().Seconds() + float64(w.processes)/20
	if w.inUse {
		estimate += float64(w.keys) / 400e3
	}
	return estimate
}

func (w onEngine) run(b *bench, p *peer) (sample, error) {
	e, err := w.start(b, p)
	if err != nil {
		return nil, err
	}
	defer e.stop()
	before, err := e.cpu()
	if err != nil {
		return nil, err
	}
	o, err := b.call(w.callersOf(p, e))
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, e.lastLog())
	}
	after, err := e.cpu()
	if err != nil {
		return nil, err
	}
	if err := w.check(e, p, o); err != nil {
		return nil, err
	}
	slices.Sort(o.Taken)
	n, took := float64(len(o.Taken)), o.Last.Sub(o.First)
	result := sample{
		engineCPU: after.engine.since(before.engine).Seconds() * 1e6 / n, callersCPU: o.CPU.Seconds() * 1e6 / n,
		perSecond: n / took.Seconds(), p50: milliseconds(o.Taken.permille(500)), p99: milliseconds(o.Taken.permille(990)),
	}
	for i := range after.celld {
		result[engineAsked] += float64(after.asked[i]-before.asked[i]) / n
		result[cpuMicroseconds] += after.celld[i].since(before.celld[i]).Seconds() * 1e6 / n
	}
	if w.limited {
		result[allowedShare] = float64(o.Allowed) / w.limit.permitted(w.keys, took)
	}
	return result, nil
}

// check looks at whether the row was what it says. That celld lets more pass than its limit is an error; a library that does is measured.
func (w onEngine) check(e *engine, p *peer, o callersOutcome) error {
	calls, permitted := len(o.Taken), w.limit.permitted(w.keys, o.Last.Sub(o.First))
	switch {
	case calls < 100:
		return fmt.Errorf("%d calls", calls)
	case w.limited == (o.Allowed == calls):
		return fmt.Errorf("of %d calls %d pass", calls, o.Allowed)
	case p.isCelld() && float64(o.Allowed) > permitted:
		return fmt.Errorf("%d calls pass, and the limit permits %.0f", o.Allowed, permitted)
	}
	if keys, err := e.server.keys(); err != nil || keys == 0 {
		return fmt.Errorf("the engine holds %d keys: %v", keys, err)
	}
	return nil
}

// callersOf are the callers of each process.
func (w onEngine) callersOf(p *peer, e *engine) []callers {
	c := callers{Addrs: []string{e.server.addr}, Limit: w.limit, N: w.callers, Keys: w.keys, PerSecond: w.perSecond, Duration: w.lasts()}
	if p.isCelld() {
		c.Command, c.Addrs = append([]string{"CL.THROTTLE", keyWord}, w.limit.words()...), nil
		if w.take != "" {
			c.Command = append([]string{"CL.TAKE", keyWord}, strings.Fields(w.take)...)
		}
		for _, s := range e.celld {
			c.Addrs = append(c.Addrs, s.addr)
		}
		return []callers{c}
	}
	var all []callers
	c.N /= w.processes
	c.PerSecond /= w.processes
	for i := range w.processes {
		c.Seed = uint64(i)
		all = append(all, c)
	}
	return all
}

// engine is a Redis, and the instances of celld that keep their limits on it.
type engine struct {
	server *server
	celld  []*server
}

type engineCPUs struct {
	engine cpuClock
	celld  []cpuClock
	asked  []int // commands that each celld has sent to the engine
}

func (w onEngine) start(b *bench, p *peer) (_ *engine, err error) {
	e := &engine{}
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	if e.server, err = b.start(rateOnRedis(), room{connections: w.callers + 1000}); err != nil {
		return nil, err
	}
	if w.inUse {
		if err := e.use(p, w); err != nil {
			return nil, err
		}
	}
	for range w.processes {
		if !p.isCelld() {
			break
		}
		s, err := b.start(p, room{engine: e.server})
		if err != nil {
			return nil, err
		}
		if e.celld = append(e.celld, s); !connects(b, s) {
			return nil, fmt.Errorf("celld does not connect to the engine%s", s.lastLog())
		}
		if w.ahead > 0 { // a build before this setting goes without
			_, _ = ask(s.addr, "CONFIG", "SET", "store-ahead", strconv.Itoa(w.ahead))
		}
	}
	return e, nil
}

// connects waits until a celld decides on its engine. It answers PING before.
func connects(b *bench, s *server) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); b.sleep(10 * time.Millisecond) {
		if _, err := ask(s.addr, "CL.THROTTLE", "connects", "1", "1", "1"); err == nil {
			return true
		}
	}
	return false
}

// useScript gives keys what one call leaves there.
const useScript = `for i = ARGV[1], ARGV[1] + 9999 do redis.call('SET', ARGV[2] .. string.format('%012d', i), ARGV[3], 'PX', ARGV[4]) end`

func (e *engine) use(p *peer, w onEngine) error {
	interval := time.Duration(w.limit.Seconds) * time.Second / time.Duration(w.limit.Count)
	tat := time.Now().Add(interval)
	prefix, value := "key:", strconv.FormatInt(tat.UnixNano(), 10)
	if p.isLibrary() { // its time is in seconds since 2017, and its prefix its own
		prefix, value = "rate:key:", fmt.Sprintf("%.6f", tat.Sub(time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds())
	}
	for first := 0; first < w.keys; first += 10_000 { // a script of a million calls takes seconds
		_, err := ask(e.server.addr, "EVAL", useScript, "0", strconv.Itoa(first), prefix, value,
			strconv.FormatInt(interval.Milliseconds(), 10))
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) cpu() (c engineCPUs, err error) {
	if c.engine, err = readCPU(e.server.pid()); err != nil {
		return c, err
	}
	for _, s := range e.celld {
		used, err := readCPU(s.pid())
		if err != nil {
			return c, err
		}
		c.celld = append(c.celld, used)
		info, err := ask(s.addr, "INFO", "stats")
		if err != nil {
			return c, err
		}
		asked, err := parseCount(info, "store_calls")
		if err != nil {
			return c, err
		}
		c.asked = append(c.asked, asked)
	}
	return c, nil
}

func (e *engine) lastLog() (text string) {
	for _, s := range append([]*server{e.server}, e.celld...) {
		text += s.lastLog()
	}
	return text
}

func (e *engine) stop() {
	for _, s := range e.celld {
		s.stop()
	}
	if e.server != nil {
		e.server.stop()
	}
}
