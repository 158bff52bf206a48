package decisions

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"celld/cell"
	"celld/resp/metrics"
	"celld/resp/stats"
	"celld/store/policy"
)

// Row counts the decisions under a policy's name and algorithm, or those under literals with one algorithm. They only grow:
// CL.STATS RESET moves the baseline.
type Row struct {
	lanes    []rowLane
	baseline atomic.Pointer[Counts]
	others   *Row // counts as well what this one does; nil: none does
}

type rowLane struct {
	n [kinds]atomic.Int64
	_ [128 - 8*kinds]byte // up to two cache lines
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

// Rows are all rows.
//
// Those that metrics tell have a lane for each core, any other has one. So 65,536 policies take 20 MB, and not 500 with 64 cores.
type Rows struct {
	policies *policy.Set
	literals []*Row // by algorithm
	others   []*Row

	mu      sync.Mutex
	names   []string // that metrics tell
	rows    map[rowKey]*Row
	purgeAt int
}

type rowKey struct {
	policy    string
	algorithm cell.Algo
}

// manyRows is the number of rows at which those of removed policies are dropped for the first time.
const manyRows = 2000

// NewRows returns the rows of these policies.
func NewRows(policies *policy.Set) *Rows {
	r := &Rows{policies: policies, rows: map[rowKey]*Row{}, purgeAt: manyRows}
	for range cell.Algos() {
		r.literals = append(r.literals, newRow(stats.Lanes()))
		r.others = append(r.others, newRow(stats.Lanes()))
	}
	return r
}

// Of returns the row of a policy. Rows of policies that are gone are dropped when there are twice as many rows as after the last time.
func (r *Rows) Of(p *policy.Policy) *Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := rowKey{p.Name, p.Limit.Algo}
	row := r.rows[key]
	if row != nil {
		return row
	}
	if len(r.rows) >= r.purgeAt {
		for old, row := range r.rows {
			if row.others != nil && r.policies.PolicyNamed(old.policy) == nil {
				delete(r.rows, old)
			}
		}
		r.purgeAt = max(manyRows, 2*len(r.rows))
	}
	if r.named(p.Name) {
		row = newRow(stats.Lanes())
	} else {
		row = newRow(1)
		row.others = r.others[p.Limit.Algo]
	}
	r.rows[key] = row
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
// visit must not take long.
func (r *Rows) each(visit func(policy string, algo cell.Algo, row *Row)) {
	for algo := range cell.Algos() {
		visit("", cell.Algo(algo), r.literals[algo])
		visit(otherPolicy, cell.Algo(algo), r.others[algo])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		for algo := range cell.Algos() {
			if row := r.rows[rowKey{name, cell.Algo(algo)}]; row != nil {
				visit(name, cell.Algo(algo), row)
			}
		}
	}
}

// Sum adds up all rows since the start.
func (r *Rows) Sum() (n Counts) {
	r.each(func(_ string, _ cell.Algo, row *Row) {
		one := row.read()
		n.Add(&one)
	})
	return n
}

// PolicyCounts is how the calls under a policy with one algorithm were decided, since the start.
type PolicyCounts struct {
	Policy    string // empty: limits without a name; otherPolicy: those of all policies but the first
	Algorithm cell.Algo
	Counts
}

// List returns those of all that were ever asked, some 100 at most. They never fall.
func (r *Rows) List() (list []PolicyCounts) {
	r.each(func(policy string, algo cell.Algo, row *Row) {
		if n := row.read(); n != (Counts{}) || policy == "" && algo == cell.GCRA { // so that there always are some
			list = append(list, PolicyCounts{policy, algo, n})
		}
	})
	return list
}

// Declare tells calls apart by their limits. Parameters of CL.THROTTLE are limits without a name. A policy's name may be no UTF-8, which
// labels must be.
func (r *Rows) Declare(l *metrics.List) {
	var n Counts
	for _, p := range r.List() {
		n.Add(&p.Counts)
		for kind, names := range kindNames {
			always := kind <= int(ThrottleLimited) && p.Policy == "" && p.Algorithm == cell.GCRA
			if names.parts[0] == "" || p.Counts[kind] == 0 && !always {
				continue
			}
			l.Counter(metrics.Metric{
				Name: "celld_decisions_total",
				Help: "Calls that limits allowed or limited. One under several limits counts once, for the limit that binds.",
				Labels: []string{"command", names.parts[0], "policy", metrics.Printable(p.Policy), "algorithm", p.Algorithm.String(),
					"decision", names.parts[1]}, Value: p.Counts[kind],
			})
		}
	}
	n.declare(l)
}

// SinceReset are the decisions since CL.STATS RESET under a policy's name.
func (r *Rows) SinceReset(policy string) (n Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for algo := range cell.Algos() {
		if row := r.rows[rowKey{policy, cell.Algo(algo)}]; row != nil {
			one := row.sinceReset()
			n.Add(&one)
		}
	}
	return n
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
	for _, row := range rows {
		row.reset()
	}
}
