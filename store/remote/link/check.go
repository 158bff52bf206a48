package link

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// nodes holds what is known of the engine's nodes, by their addresses.
type nodes struct {
	mu   sync.Mutex
	all  map[string]*node
	last *node
}

// node is what a node says of itself. A text is "not known" if the engine does not tell.
type node struct {
	version     string // such as "Redis 7.0.15" or "Valkey 8.1.1"
	eviction    string // maxmemory-policy
	persistence string
	role        string
	clock       time.Duration // of the engine against this machine's, exact to clockError
	clockError  time.Duration
	clockKnown  bool
}

const notKnown = "not known"

// mostClockOff is how far apart clocks may be without a warning.
const mostClockOff = 100 * time.Millisecond

// check asks a node what it is, and logs what is new, one line for each thing.
func (l *Link) check(addr string, c rueidis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	n := &node{version: notKnown, eviction: notKnown, persistence: notKnown, role: notKnown}
	info, infoErr := c.Do(ctx, c.B().Info().Build()).ToString()
	save, saveErr := c.Do(ctx, c.B().ConfigGet().Parameter("save").Build()).AsStrMap()
	if _, answers := rueidis.IsRedisErr(infoErr); infoErr != nil && (!answers || Is(Classify(infoErr), causeBusy)) {
		l.dialed.add(addr) // the connection broke, or a script runs: again later
		return
	}
	n.read(parseInfo(info), save["save"], saveErr == nil)
	before := time.Now()
	if parts, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice(); err == nil && len(parts) == 2 {
		n.clockError = time.Since(before) / 2
		n.clock = time.Unix(parts[0], parts[1]*1000).Sub(before.Add(n.clockError))
		n.clockKnown = true
	}
	n.log(l.log, addr, l.nodes.replace(addr, n))
}

// replace notes what a node says, and returns what it said before.
func (l *nodes) replace(addr string, n *node) (old *node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[string]*node)
	}
	if old = l.all[addr]; old == nil {
		old = &node{}
	}
	l.all[addr], l.last = n, n
	return old
}

// keep removes the nodes that are no longer there.
func (l *nodes) keep(there map[string]rueidis.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.all, func(addr string, _ *node) bool { return there[addr] == nil })
}

// parseInfo reads the fields of INFO.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// read takes the fields of INFO, and the save points.
func (n *node) read(info map[string]string, save string, saveKnown bool) {
	switch {
	case info["valkey_version"] != "":
		n.version = "Valkey " + info["valkey_version"]
	case info["redis_version"] != "":
		n.version = "Redis " + info["redis_version"]
	}
	if policy := info["maxmemory_policy"]; policy != "" {
		n.eviction = policy
		if info["maxmemory"] == "0" {
			n.eviction += ", no maxmemory"
		}
	}
	n.role = cmp.Or(info["role"], notKnown)
	if info["redis_mode"] == "sentinel" {
		n.role = "sentinel"
	}
	aof := info["aof_enabled"]
	switch {
	case aof == "1":
		n.persistence = "append-only file"
	case saveKnown && save != "":
		n.persistence = "snapshots"
	case saveKnown && aof == "0":
		n.persistence = "none"
	case aof == "0":
		n.persistence = "no append-only file; CONFIG GET is refused, so snapshots are not known"
	}
}

// log writes what differs from what was known before.
func (n *node) log(log *slog.Logger, addr string, old *node) {
	line := func(thing, value, before, warning string) {
		switch {
		case value == before:
		case warning != "":
			log.Warn("the engine's "+thing, "node", addr, "is", value, "warning", warning)
		default:
			log.Info("the engine's "+thing, "node", addr, "is", value)
		}
	}
	line("version", n.version, old.version, n.versionWarning())
	line("role", n.role, old.role, warnings[n.role])
	line("eviction policy", n.eviction, old.eviction, n.evictionWarning())
	line("persistence", n.persistence, old.persistence, warnings[n.persistence])
	if first := old.version == ""; !first && old.clockKnown == n.clockKnown && old.clockWarning() == n.clockWarning() {
		return // the time is never the same twice
	}
	line("clock", n.clockText(), "", n.clockWarning())
}

// warnings are about roles and ways to persist.
var warnings = map[string]string{
	"slave":    "a replica takes no writes: calls fail until it is a master",
	"sentinel": "a Sentinel keeps no limits: add ?master= and the name of the master to --store",
	"none":     "a restart of the engine resets all limits",
}

func (n *node) versionWarning() string {
	var major, minor int
	if n, _ := fmt.Sscanf(n.version, "Redis %d.%d", &major, &minor); n == 2 && (major < 6 || major == 6 && minor < 2) {
		return "celld is tested with Redis 6.2 and later"
	}
	return ""
}

func (n *node) evictionWarning() string {
	policy, _, unbounded := strings.Cut(n.eviction, ",")
	if unbounded || policy == "noeviction" || policy == notKnown {
		return ""
	}
	return "the engine resets limits when its memory is full"
}

func (n *node) clockWarning() string {
	if n.clockKnown && n.clock.Abs()-n.clockError > mostClockOff {
		return "limits and the times in replies follow the engine's clock"
	}
	return ""
}

func (n *node) clockText() string {
	if !n.clockKnown {
		return notKnown
	}
	way := "ahead"
	if n.clock < 0 {
		way = "behind"
	}
	return fmt.Sprintf("%v %s, give or take %v", n.clock.Abs().Round(10*time.Microsecond), way, n.clockError.Round(10*time.Microsecond))
}

// Engine is what the engine's nodes say of themselves. Without an answer it is the zero value.
type Engine struct {
	Versions              []string // of all nodes, sorted, each once
	Eviction, Persistence string   // of the node that has answered last
	Clock                 time.Duration
	ClockKnown            bool // Clock is how far that one's is ahead of this machine's
}

// Engine is what is known of the engine.
func (l *Link) Engine() (e Engine) {
	all := &l.nodes
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, n := range all.all {
		e.Versions = append(e.Versions, n.version)
	}
	slices.Sort(e.Versions)
	e.Versions = slices.Compact(e.Versions)
	if n := all.last; n != nil {
		e.Eviction, e.Persistence, e.Clock, e.ClockKnown = n.eviction, n.persistence, n.clock, n.clockKnown
	}
	return e
}
