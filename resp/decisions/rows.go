package decisions

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"celld/cell"
	"celld/resp/metrics"
	"celld/resp/stats"
	"celld/store/policy"
)

// Row counts the decisions under a limit of a policy, or those under literals with one algorithm. They only grow:
// CL.STATS RESET moves the baseline.
type Row struct {
	lanes    []rowLane
	baseline atomic.Pointer[Counts]
	others   *Row // counts as well what this one does; nil: none does
}

type rowLane struct {
	n [kinds]atomic.Int64
	_ [192 - 8*kinds]byte // up to three cache lines
}

func newRow(lanes int) *Row { return &Row{lanes: make([]rowLane, lanes)} }

func (r *Row) add(lane uint8, n *Counts) {
	for ; r != nil; r = r.others {
		at := &r.lanes[int(lane)&(len(r.lanes)-1)].n
		for kind := range n {
			if n[kind] != 0 {
				at[kind].Add(n[kind])
			}
		}
	}
}

func (r *Row) read() (n Counts) {
	for i := range r.lanes {
		for kind := range n {
			n[kind] += r.lanes[i].n[kind].Load()
		}
	}
	return n
}

// sinceReset are the decisions since CL.STATS RESET.
func (r *Row) sinceReset() Counts {
	baseline := r.baseline.Load() // before the totals, which only grow
	n := r.read()
	if baseline != nil {
		for kind := range n {
			n[kind] -= baseline[kind]
		}
	}
	return n
}

func (r *Row) reset() {
	n := r.read()
	r.baseline.Store(&n)
}

// mostPolicyNames is how many policies metrics tell by name: the first that are asked. The rows of others are added up in one for each
// algorithm, which metrics call otherPolicy. A name stays, also when its policy goes, as Prometheus must not see a count fall.
const mostPolicyNames = 100

// otherPolicy is also how metrics count a policy of that name.
const otherPolicy = "other"

// Literals is how people and metrics call limits without a policy.
const Literals = "literals"

// Shown is a policy's name as CL.STATS, metrics and the page have it; that of "" is Literals, and a policy of that name has its @.
func Shown(policy string) string {
	switch policy {
	case "":
		return Literals
	case Literals:
		return "@" + policy
	}
	return policy
}

// Rows are all rows.
//
// Those that metrics tell have a lane for each core, any other has one. So 65,536 policies take 25 MB, and not 750 with 64 cores.
type Rows struct {
	NearLimit NearLimit // at first 80

	policies *policy.Set
	literals []*Row // by algorithm
	others   []*Row

	mu      sync.Mutex
	names   []string              // that metrics tell
	rows    map[string][]limitRow // by policy
	purgeAt int
}

// limitRow is the row of a limit of a policy.
type limitRow struct {
	shape cell.Shape // bare
	*Row
}

// mostLimitRows is how many rows a policy has whose limits change again and again. More limits count in the row of the first.
const mostLimitRows = 2 * policy.MostLimits

// manyRows is the number of policies with rows at which those of removed ones are dropped for the first time.
const manyRows = 2000

// NewRows returns the rows of these policies.
func NewRows(policies *policy.Set) *Rows {
	r := &Rows{policies: policies, rows: map[string][]limitRow{}, purgeAt: manyRows}
	r.NearLimit.Store(80)
	for range cell.Algos() {
		r.literals = append(r.literals, newRow(stats.Lanes()))
		r.others = append(r.others, newRow(stats.Lanes()))
	}
	return r
}

// Of returns the row of a policy's limit. Rows of policies that are gone are dropped when there are twice as many as after the last time.
func (r *Rows) Of(l *policy.Limit) *Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, shape := l.Policy.Name, l.Limit.Bare()
	rows := r.rows[name]
	if at := slices.IndexFunc(rows, func(row limitRow) bool { return row.shape == shape }); at >= 0 {
		return rows[at].Row
	}
	if len(rows) == mostLimitRows {
		return rows[0].Row
	}
	if len(r.rows) >= r.purgeAt {
		for old, rows := range r.rows {
			if rows[0].others != nil && r.policies.PolicyNamed(old) == nil {
				delete(r.rows, old)
			}
		}
		r.purgeAt = max(manyRows, 2*len(r.rows))
	}
	row := newRow(1)
	if r.named(name) {
		row = newRow(stats.Lanes())
	} else {
		row.others = r.others[shape.Algo]
	}
	r.rows[name] = append(rows, limitRow{shape, row})
	return row
}

// named reports whether metrics show a policy by its name. It adds the name while there is room.
func (r *Rows) named(name string) bool {
	if slices.Contains(r.names, name) {
		return true
	}
	if len(r.names) == mostPolicyNames || name == otherPolicy {
		return false
	}
	r.names = append(r.names, name)
	return true
}

// Literal returns the row of limits without a policy.
func (r *Rows) Literal(algo cell.Algo) *Row { return r.literals[algo] }

// each calls visit for the rows that metrics tell, of which others and literals come first. A policy's name is empty for literals. The
// period is that of a policy's limit. The visit must not take long.
func (r *Rows) each(visit func(policy string, algo cell.Algo, period string, row *Row)) {
	for algo := range cell.Algos() {
		visit("", cell.Algo(algo), "", r.literals[algo])
		visit(otherPolicy, cell.Algo(algo), "", r.others[algo])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		for _, row := range r.rows[name] {
			visit(name, row.shape.Algo, periodOf(row.shape), row.Row)
		}
	}
}

func periodOf(s cell.Shape) string {
	_, period, _ := strings.Cut(string(s.AppendText(nil)), "/")
	return period
}

// Sum adds up all rows since the start.
func (r *Rows) Sum() (n Counts) {
	r.each(func(_ string, _ cell.Algo, _ string, row *Row) {
		one := row.read()
		n.Add(&one)
	})
	return n
}

// LimitCounts is how the calls under a limit of a policy, or under literals with one algorithm, were decided, since the start.
type LimitCounts struct {
	Policy    string // empty: limits without a name; otherPolicy: those of all policies but the first
	Algorithm cell.Algo
	Period    string // of a policy's limit, unless that is otherPolicy
	Counts
}

// List returns those of all that were ever asked, some 100 policies at most. They never fall.
func (r *Rows) List() (list []LimitCounts) {
	r.each(func(policy string, algo cell.Algo, period string, row *Row) {
		if n := row.read(); n != (Counts{}) || policy == "" && algo == cell.GCRA { // so that there always are some
			list = append(list, LimitCounts{policy, algo, period, n})
		}
	})
	return list
}

// Declare tells calls apart by their limits. Parameters of CL.THROTTLE are limits without a name. A policy's name may be no UTF-8, which
// labels must be.
func (r *Rows) Declare(l *metrics.List) {
	var n Counts
	list := r.List()
	for _, p := range list {
		n.Add(&p.Counts)
		for kind, names := range kindNames {
			always := kind <= int(ThrottleLimited) && p.Policy == "" && p.Algorithm == cell.GCRA
			value := p.Counts[kind]
			if Kind(kind) == TakeAllowed {
				value += p.Counts[AlsoAllowed]
			}
			if names.parts[0] == "" || value == 0 && !always {
				continue
			}
			l.Counter(metrics.Metric{
				Name: "celld_decisions_total",
				Help: "Decisions, one for each policy that a call names.",
				Labels: []string{"command", names.parts[0], "policy", metrics.Printable(Shown(p.Policy)), "algorithm", p.Algorithm.String(),
					"decision", names.parts[1], "period", p.Period}, Value: value,
			})
		}
	}
	for i := range list {
		list[i].declareNear(l)
	}
	n.declare(l)
}

// declareNear tells those near to their limits apart, as Declare does.
func (p *LimitCounts) declareNear(l *metrics.List) {
	if p.Counts[Near] > 0 || p.Policy == "" && p.Algorithm == cell.GCRA {
		l.Counter(metrics.Metric{
			Name: "celld_near_limit_total", Help: "Calls that passed and left little of their limit.",
			Labels: []string{"policy", metrics.Printable(Shown(p.Policy)), "algorithm", p.Algorithm.String(), "period", p.Period},
			Value:  p.Counts[Near],
		})
	}
}

// SinceReset are the decisions since CL.STATS RESET under a policy's name, and how often each of its limits has bound, by the limit's name:
// gcra/1m.
func (r *Rows) SinceReset(policy string) (n Counts, bound []Bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.rows[policy] {
		one := row.sinceReset()
		n.Add(&one)
		_, limited := one.Decided()
		bound = append(bound, Bound{string(row.shape.AppendText(nil)), max(0, limited-one[RuleDenied])})
	}
	return n, bound
}

// Bound is how often a limit has denied a call.
type Bound struct {
	Limit string
	Calls int64
}

// LiteralsSinceReset are those under literals.
func (r *Rows) LiteralsSinceReset() (n Counts) {
	for _, row := range r.literals {
		one := row.sinceReset()
		n.Add(&one)
	}
	return n
}

// Reset sets the counts of CL.STATS to 0.
func (r *Rows) Reset() {
	for _, row := range r.literals {
		row.reset()
	}
	r.mu.Lock()
	rows := slices.Collect(maps.Values(r.rows)) // 2 ms where there are 65,536, of 17 for all
	r.mu.Unlock()
	for _, of := range rows {
		for _, row := range of {
			row.reset()
		}
	}
}
