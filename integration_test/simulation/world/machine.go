package world

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/integration_test/simulation/check"
	"celld/integration_test/simulation/disk"
	"celld/integration_test/simulation/network"
	"celld/persistence"
	"celld/resp"
	"celld/resp/config"
	"celld/resp/engine"
	"celld/resp/script"
	"celld/resp/scripts"
	"celld/resp/transport"
	"celld/resp/web"
	"celld/store/memory"
	"celld/store/remote"
)

// machine runs celld. Its disk outlives the process.
type machine struct {
	w      *world
	number int
	addr   string
	disk   *disk.Disk

	well sync.Mutex // see world.well

	mu      sync.Mutex
	reads   []int64 // what its clock has said, each once
	life    *life   // nil: it is down
	lives   int
	failing bool // the disk refuses writes, or has since the start of this life

	working chan struct{} // closed when the disk begins to work; nil: nobody waits for that

	aheadNS int64      // its wall clock, of the time of limits
	drifts  int64      // by how many ns it gets further ahead in a second
	stalls  *rand.Rand // draws when it stands still; nil: never

	mayBeDamaged bool // writes may be missing in the middle of a file
}

// life is one process.
type life struct {
	m      *machine
	number int
	server *resp.Server
	engine *remote.Store // nil: limits are in memory
	files  *disk.Mount
	cancel context.CancelFunc
	ready  chan struct{} // closed when it serves
	ended  chan struct{} // closed when Serve has returned
	err    error
	killed bool
}

func (m *machine) name() string { return "celld " + m.addr }

// serves is where clients connect to.
func (m *machine) serves() string { return m.addr + ":6379" }

// http is where probes and proxies connect to.
func (m *machine) http() string { return m.addr + ":8080" }

func newMachine(w *world, number int) *machine {
	m := &machine{w: w, number: number, addr: fmt.Sprintf("127.0.0.%d", number+1), disk: disk.New(w.plan.chance("disk"))}
	m.disk.Reorders = w.plan.reorders
	if r := w.plan.chance("drift of " + m.addr); w.plan.steps || w.plan.engine != noEngine {
		m.drifts = oneOf(r, 0, r.Int64N(mostDrift), -r.Int64N(mostDrift))
	}
	if w.plan.stalls {
		m.stalls = w.plan.chance("stalls of " + m.addr)
	}
	if slow, r := w.plan.slowDisk, w.plan.chance("slow disk"); slow > 0 {
		m.disk.Takes = func(disk.Op) time.Duration {
			m.works()
			return time.Duration(r.Int64N(int64(slow)))
		}
	}
	return m
}

// works notes that the disk begins to work.
func (m *machine) works() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.working != nil {
		close(m.working)
		m.working = nil
	}
}

// midst returns in the midst of the disk's next work, or after a second.
func (m *machine) midst(r *rand.Rand) {
	begins := make(chan struct{})
	m.mu.Lock()
	m.working = begins
	m.mu.Unlock()
	select {
	case <-begins:
	case <-time.After(time.Second):
	}
	time.Sleep(time.Duration(r.Int64N(int64(2 * m.w.plan.slowDisk))))
}

// mostDrift is how many ns a second a wall clock is wrong by: 500 ppm, the most that adjtimex allows.
const mostDrift = 500_000

// longestStall is how long a machine stands still at most, and stallsOneIn how often it looks at its clock for one such time.
const (
	longestStall = 2 * time.Millisecond
	stallsOneIn  = 100
)

// now is the machine's clock, and that of limits. A goroutine that looks at it may have to wait for the processor, as anywhere: others run
// meanwhile.
func (m *machine) now() int64 {
	if m.stalls != nil && m.stalls.IntN(stallsOneIn) == 0 {
		time.Sleep(time.Duration(m.stalls.Int64N(int64(longestStall))))
	}
	now := time.Now().UnixNano()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.reads); n == 0 || m.reads[n-1] < now {
		m.reads = append(m.reads, now)
	}
	return now
}

// readClocks reads the wall clock and that of limits.
func (m *machine) readClocks() (wallNS, nowNS int64, ok bool) {
	nowNS = m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return nowNS + m.aheadNS + int64(m.w.since()/time.Second)*m.drifts, nowNS, true
}

// setClock sets the wall clock.
func (m *machine) setClock(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.aheadNS += int64(by)
}

// looks is how often the clock was read.
func (m *machine) looks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.reads)
}

// without is how many calls the process has decided without the engine, and which process that is.
func (m *machine) without() (is [2]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is[0] = int64(m.lives); m.life != nil && m.life.engine != nil {
		is[1] = m.life.engine.Facts().Counts.DecidedWithout
	}
	return is
}

// between are the readings from one look to another.
func (m *machine) between(from, to int) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads[from:to:to]
}

// start starts a process, and returns when it serves or has ended.
func (m *machine) start() { m.startAt(m.w.network.Listen) }

// startAt starts a process that listens so.
func (m *machine) startAt(listen func(addr string) (*network.Listener, error)) {
	w := m.w
	keeps := &engine.Settings{}
	cfg := config.New(config.Part{Rows: config.Scripts}, keeps.Part())
	for _, s := range append([][2]string{{"maxmemory", "0"}, {"save", ""}}, w.plan.settings...) {
		if err := cfg.Setting(s[0]).Value.Set(s[1]); err != nil {
			panic(err)
		}
	}
	if w.plan.has("secrets") {
		if err := cfg.Load(func(string) bool { return false }); err != nil {
			panic(err)
		}
	}
	l := &life{m: m, files: m.disk.Mount(), ready: make(chan struct{}), ended: make(chan struct{})}
	m.mu.Lock()
	m.lives++
	l.number, m.life = m.lives, l
	m.mu.Unlock()
	read, err := resp.ReadFiles(cfg)
	if err != nil {
		panic(err)
	}
	log := slog.New(&logger{l})
	exit := func(code int) { l.wrong("it ends itself with code %d", code) }
	keys := memory.New(memory.Options{MaxKeys: cfg.MaxKeys.Get(), MaxBytes: cfg.MaxMemory.Get(), NoEviction: cfg.NoEviction(),
		Journal: w.plan.fsync != "", Now: m.now})
	files := cfg.Persistence()
	files.Clock, files.Log, files.Files, files.Exit = m.now, log, l.files, exit
	o := resp.Options{Config: cfg, Files: read, Store: keys, Log: log, Clock: m.now, Version: "simulated",
		Persistence: persistence.New(keys, files), Exit: exit, ReadClocks: m.readClocks,
		Scripts: func() scripts.Engine { return script.NewEngine() }}
	if w.fleet != nil {
		if l.engine, err = w.fleet.open(l, keeps.Options(cfg), keys.Set, log); err != nil {
			panic(err)
		}
		o.Engine = l.engine
	}
	l.server = resp.NewServer(o)
	ln, err := listen(m.serves())
	if err != nil {
		panic(err)
	}
	all := []transport.Listener{{Listener: ln}}
	if w.plan.has("secrets") {
		all = append(all, m.listenTLS(cfg, listen))
	}
	if w.plan.has("http") {
		ln, err := listen(m.http())
		if err != nil {
			panic(err)
		}
		if err := web.Serve(l.server, w.http(ln), log); err != nil {
			panic(err)
		}
	}
	if w.plan.has("envoy") {
		if err := l.serveEnvoy(func(addr string) (net.Listener, error) { return listen(addr) }, log); err != nil {
			panic(err)
		}
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	w.event(m.name(), "starts, life %d", l.number)
	go func() {
		l.err = l.server.Serve(ctx, all, func() { close(l.ready) })
		if o.Engine != nil {
			o.Engine.Close()
		}
		close(l.ended)
	}()
	select {
	case <-l.ready:
		w.event(m.name(), "serves")
	case <-l.ended:
		w.event(m.name(), "ended at its start: %v", l.err)
		m.repair(l)
	}
}

// repair does what the error of a start says, where docs/explanation/what-happens-when.md says that a start may fail: the disk has lost a
// write of the append-only file and kept a later one.
func (m *machine) repair(l *life) {
	_, text, _ := strings.Cut(l.err.Error(), "appendonly.aof: damaged at byte ")
	text, _, _ = strings.Cut(text, ":")
	at, err := strconv.Atoi(text)
	if err != nil || !m.mayBeDamaged {
		m.w.endsHere("celld does not start: %v", l.err)
	}
	m.w.count("repaired")
	l.files.Unmount()
	m.w.network.Cut(m.addr)
	m.disk.Cut("/data/appendonly.aof", at)
	m.start()
}

// reload is SIGHUP. One that comes while celld loads waits until it has loaded.
func (m *machine) reload() {
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	if l == nil {
		return
	}
	select {
	case <-l.ready:
	case <-l.ended:
	}
	if !l.isKilled() {
		m.w.event(m.name(), "reloads")
		l.server.Reload()
	}
}

// drained waits until the process is ready and nobody waits, which it is soon after the last fault.
func (m *machine) drained() {
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	m.w.event(m.name(), "shall be ready and idle")
	why := ""
	for range 300 {
		if why = l.server.NotReady(); why == "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if why != "" {
		m.w.wrong("%s is not ready at the end: %s", m.name(), why)
	}
	c := m.w.caller("the end", 200)
	c.only = m
	info, _ := c.do("INFO", "clients", "stats").value.(string)
	if number(field(info, "store_decided_ahead")) > 0 {
		m.w.count("decided ahead")
	}
	for _, name := range []string{"blocked_clients", "waiting_keys"} {
		if field(info, name) != "0" {
			m.w.wrong("%s has %s %s at the end", m.name(), name, field(info, name))
		}
	}
	if m.w.plan.has("http") {
		m.w.fetch(&c, m, "/readyz", http.StatusOK)
	}
	c.hangUp()
}

func (l *life) wrong(format string, args ...any) {
	if !l.isKilled() {
		l.m.w.wrong("life "+strings.Repeat("I", l.number)+": "+format, args...)
	}
}

func (l *life) isKilled() bool {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.killed
}

// kill ends the process at once: nothing that it does from now on is seen. With power, the disk loses what was not synced.
func (m *machine) kill(power bool) {
	m.mu.Lock()
	l := m.life
	if l == nil || l.killed {
		m.mu.Unlock()
		return
	}
	l.killed = true
	m.mu.Unlock()
	at := m.w.event(m.name(), "killed, power %v", power)
	l.files.Unmount()
	m.w.network.Cut(m.addr)
	if power {
		m.disk.LosePower()
		m.mayBeDamaged = m.mayBeDamaged || m.disk.Reorders && m.w.plan.fsync == "no"
	}
	m.crashed(at, power, false)
	l.cancel()
}

// crashed notes what the next life need not know. stopped: it had the time to write all.
func (m *machine) crashed(at int64, power, stopped bool) {
	c := check.Crash{At: at, AtNS: m.now(), Loose: m.w.plan.fsync == "no"}
	switch slow := m.w.plan.slowDisk; {
	case m.w.plan.fsync == "" && !m.w.plan.snapshots:
		c.All = true
	case m.w.plan.fsync == "always", stopped && !m.failing:
	case m.w.plan.snapshots && !m.failing:
		c.ForgetsNS = int64(3*time.Second + 100*slow)
	case m.w.plan.fsync == "no" && power, m.failing:
		c.ForgetsNS = 1 << 61
	default:
		c.ForgetsNS = int64(time.Second + 40*slow)
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.w.history.Crashes = append(m.w.history.Crashes, c)
	if m.w.fleet == nil && (c.All || c.ForgetsNS > 0) {
		l := check.Loss{Ended: at, FromNS: c.AtNS - c.ForgetsNS}
		if c.All {
			l.FromNS = math.MinInt64
		}
		m.w.history.Losses = append(m.w.history.Losses, l)
	}
}

// stop ends the process as SIGTERM does.
func (m *machine) stop() {
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	if l != nil && !l.isKilled() {
		m.end(l)
	}
}

// handOver starts a process beside the one that runs, and ends that a moment later: the new one waits for the directory.
func (m *machine) handOver(f fault) {
	m.mu.Lock()
	old, failing := m.life, m.failing
	m.mu.Unlock()
	if old == nil || old.isKilled() || failing {
		return
	}
	m.w.event(m.name(), "another process starts beside it")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		time.Sleep(f.long / 4)
		m.end(old)
	}()
	m.startAt(m.w.network.TakeOver)
	<-gone
}

// end ends a process.
func (m *machine) end(l *life) {
	m.w.event(m.name(), "life %d is told to stop", l.number)
	l.cancel()
	select {
	case <-l.ended:
	case <-time.After(time.Minute):
		m.w.wrong("celld has not stopped within a minute")
		return
	}
	at := m.w.event(m.name(), "life %d has stopped: %v", l.number, l.err)
	if l.err != nil && !m.failing {
		m.w.wrong("celld stopped with an error: %v", l.err)
	}
	m.crashed(at, false, true)
	l.files.Unmount()
	m.mu.Lock()
	l.killed = true
	m.mu.Unlock()
}

// recover starts the process again if it is down.
func (m *machine) recover() {
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	if l == nil || l.isKilled() {
		m.failing = false
		m.start()
	}
}

// logger puts what celld logs into the trace.
type logger struct{ l *life }

func (g *logger) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (g *logger) WithAttrs([]slog.Attr) slog.Handler               { return g }
func (g *logger) WithGroup(string) slog.Handler                    { return g }

func (g *logger) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	if g.l.isKilled() {
		return nil
	}
	g.l.m.w.event(g.l.m.name(), "%s %s%s", r.Level, r.Message, b.String())
	if strings.Contains(r.Message, "panic") {
		g.l.wrong("it has panicked: %s%s", r.Message, b.String())
	}
	return nil
}
