package resp

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"celld/cell"
	"celld/resp/metrics"
	"celld/resp/stats"
	"celld/store/memory"
	"celld/store/policy"
)

// decisionRow has the decisions under a policy's name and algorithm, or those under literals with one algorithm. They only grow:
// CL.STATS RESET moves the baseline.
type decisionRow struct {
	lanes    []decisionLane
	baseline atomic.Pointer[decisions]
	others   *decisionRow // counts as well what this one does; nil: none does
}

type decisionLane struct {
	n [decisionKinds]atomic.Int64
	_ [128 - 8*decisionKinds]byte // up to two cache lines
}

func newDecisionRow(lanes int) *decisionRow { return &decisionRow{lanes: make([]decisionLane, lanes)} }

func (r *decisionRow) add(lane uint8, n *decisions) {
	for ; r != nil; r = r.others {
		at := &r.lanes[int(lane)&(len(r.lanes)-1)].n
		for kind := range n {
			if n[kind] != 0 {
				at[kind].Add(n[kind])
			}
		}
	}
}

func (r *decisionRow) read() (n decisions) {
	for i := range r.lanes {
		for kind := range n {
			n[kind] += r.lanes[i].n[kind].Load()
		}
	}
	return n
}

// sinceReset are the decisions since CL.STATS RESET.
func (r *decisionRow) sinceReset() decisions {
	baseline := r.baseline.Load() // before the totals, which only grow
	n := r.read()
	if baseline != nil {
		for kind := range n {
			n[kind] -= baseline[kind]
		}
	}
	return n
}

func (r *decisionRow) reset() {
	n := r.read()
	r.baseline.Store(&n)
}

// mostPolicyNames is how many policies metrics tell by name: the first that are asked. The rows of others are added up in one for each
// algorithm, which metrics call otherPolicy. A name stays, also when its policy goes, as Prometheus must not see a count fall.
const mostPolicyNames = 100

// otherPolicy is also how metrics count a policy of that name.
const otherPolicy = "other"

// decisionRows are all rows.
//
// Those that metrics tell have a lane for each core, any other has one. So 65,536 policies take 20 MB, and not 500 with 64 cores.
type decisionRows struct {
	literals []*decisionRow // by algorithm
	others   []*decisionRow

	mu      sync.Mutex
	names   []string // that metrics tell
	rows    map[rowKey]*decisionRow
	purgeAt int
}

type rowKey struct {
	policy    string
	algorithm cell.Algo
}

// manyRows is how many rows there are when those of policies that are gone are dropped for the first time.
const manyRows = 2000

func newDecisionRows() *decisionRows {
	r := &decisionRows{rows: map[rowKey]*decisionRow{}, purgeAt: manyRows}
	for range cell.Algos() {
		r.literals = append(r.literals, newDecisionRow(stats.Lanes()))
		r.others = append(r.others, newDecisionRow(stats.Lanes()))
	}
	return r
}

// of returns the row of a policy. Rows of policies that are gone are dropped when there are twice as many rows as after the last time.
func (r *decisionRows) of(p *policy.Policy, policies *memory.Store) *decisionRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := rowKey{p.Name, p.Limit.Algo}
	row := r.rows[key]
	if row != nil {
		return row
	}
	if len(r.rows) >= r.purgeAt {
		for old, row := range r.rows {
			if row.others != nil && policies.PolicyNamed(old.policy) == nil {
				delete(r.rows, old)
			}
		}
		r.purgeAt = max(manyRows, 2*len(r.rows))
	}
	if r.named(p.Name) {
		row = newDecisionRow(stats.Lanes())
	} else {
		row = newDecisionRow(1)
		row.others = r.others[p.Limit.Algo]
	}
	r.rows[key] = row
	return row
}

// named reports whether metrics tell a policy by its name, and lets them if few are.
func (r *decisionRows) named(name string) bool {
	for _, known := range r.names {
		if name == known {
			return true
		}
	}
	if len(r.names) == mostPolicyNames || name == otherPolicy {
		return false
	}
	r.names = append(r.names, name)
	return true
}

// each calls visit for the rows that metrics tell, of which others and literals come first. A policy's name is empty for literals. The
// visit must not take long.
func (r *decisionRows) each(visit func(policy string, algo cell.Algo, row *decisionRow)) {
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

// sum adds up all rows since the start.
func (r *decisionRows) sum() (n decisions) {
	r.each(func(_ string, _ cell.Algo, row *decisionRow) {
		one := row.read()
		n.add(&one)
	})
	return n
}

// policyDecisions is how the calls under a policy with one algorithm were decided, since the start.
type policyDecisions struct {
	policy    string // empty: limits without a name; otherPolicy: those of all policies but the first
	algorithm cell.Algo
	decisions
}

// list returns those of all that were ever asked, some 100 at most. They never fall.
func (r *decisionRows) list() (list []policyDecisions) {
	r.each(func(policy string, algo cell.Algo, row *decisionRow) {
		if n := row.read(); n != (decisions{}) || policy == "" && algo == cell.GCRA { // so that there always are some
			list = append(list, policyDecisions{policy, algo, n})
		}
	})
	return list
}

// declare tells calls apart by their limits. Parameters of CL.THROTTLE are limits without a name. A policy's name may be no UTF-8, which
// labels must be.
func (r *decisionRows) declare(l *metrics.List) {
	const shadow = "What limits with shadow would have decided."
	var n decisions
	for _, p := range r.list() {
		n.add(&p.decisions)
		for kind, name := range [...][2]string{throttleAllowed: {"cl.throttle", "allowed"}, throttleLimited: {"cl.throttle", "limited"}, takeAllowed: {"cl.take", "allowed"}, takeLimited: {"cl.take", "limited"}} {
			if p.decisions[kind] > 0 || kind <= int(throttleLimited) && p.policy == "" && p.algorithm == cell.GCRA {
				l.Counter(metrics.Metric{
					Name: "celld_decisions_total", Help: "Calls that limits allowed or limited. One under several limits counts once, for the limit that binds.",
					Labels: []string{"command", name[0], "policy", printable(p.policy), "algorithm", p.algorithm.String(), "decision", name[1]}, Value: p.decisions[kind],
				})
			}
		}
	}
	l.Counter(metrics.Metric{Field: "throttle_allowed", JSON: "allowed", Value: n[throttleAllowed]})
	l.Counter(metrics.Metric{Field: "throttle_limited", JSON: "limited", Value: n[throttleLimited]})
	l.Counter(metrics.Metric{Field: "take_allowed", JSON: "allowed", Value: n[takeAllowed]})
	l.Counter(metrics.Metric{Field: "take_limited", JSON: "limited", Value: n[takeLimited]})
	l.Counter(metrics.Metric{Field: "rule_denied", Name: "celld_rule_denials_total", Help: "Limited calls that a rule denied.", Value: n[ruleDenied]})
	l.Counter(metrics.Metric{Field: "shadow_limited", Name: "celld_shadow_decisions_total", Labels: []string{"decision", "limited"}, Help: shadow, Value: n[shadowLimited]})
	l.Counter(metrics.Metric{Field: "shadow_allowed", Name: "celld_shadow_decisions_total", Labels: []string{"decision", "allowed"}, Help: shadow, Value: n[shadowAllowed]})
}

// sinceReset are the decisions since CL.STATS RESET under a policy's name.
func (r *decisionRows) sinceReset(policy string) (n decisions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for algo := range cell.Algos() {
		if row := r.rows[rowKey{policy, cell.Algo(algo)}]; row != nil {
			one := row.sinceReset()
			n.add(&one)
		}
	}
	return n
}

// literalsSinceReset are those under literals.
func (r *decisionRows) literalsSinceReset() (n decisions) {
	for _, row := range r.literals {
		one := row.sinceReset()
		n.add(&one)
	}
	return n
}

// reset has CL.STATS count from now on.
func (r *decisionRows) reset() {
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
