package decisions

import (
	"slices"
	"sync/atomic"

	"celld/cell"
	"celld/resp/metrics"
)

// Counts are how calls were decided. A call that could take something counts once, as allowed or limited, however many limits
// and keys it has: under the limit that binds. It counts once more under each further policy that it names, in kinds of their own. CL.TAKE
// and CL.MTAKE count as takes, and an INCREX with a bound as a count: limited if the bound kept it from adding anything. A call that only
// looks (quantity 0, COST 0, PEEK, BYINT 0), gives back (CL.GIVE, a negative quantity) or gets an error does not count.
//
// A batch gathers its decisions, so 64 decisions cost one or two additions to shared memory. Where replies wait for the disk, a
// round's decisions count when its changes are on the disk. If that fails, its calls get -MISCONF and do not count.
type Counts [kinds]int64

// Kind is a way to decide a call. It is an index of Counts.
type Kind int

// The kinds of decisions. A new one is a constant here, a row in kindNames, and what counts it.
const (
	ThrottleAllowed Kind = iota
	ThrottleLimited
	TakeAllowed
	TakeLimited
	CountAllowed
	CountLimited
	EnvoyAllowed // the statuses of Envoy's rate limit service, each under its limit
	EnvoyLimited
	Blocked       // the limited calls whose limit has block=: their key is denied for that long
	RuleDenied    // the limited calls that a rule denied
	ShadowLimited // what a limit with shadow would have decided
	ShadowAllowed
	PartlyGranted  // the allowed calls that got less than they asked for (UPTO)
	AlsoAllowed    // calls that count as TakeAllowed under another limit, too
	LimitedByOther // calls that another limit of theirs has denied
	AlsoRuleDenied // calls that count as RuleDenied under another limit, too
	Near           // the allowed calls that left little of the limit that binds: see NearLimit
	kinds
)

// kindNames are the names of each kind. CL.STATS adds up the kinds of one name.
var kindNames = [kinds]struct {
	stats string         // of CL.STATS
	total metrics.Metric // of all policies
	parts [2]string      // the command and the decision in celld_decisions_total; empty: the kind does not decide, it says more
}{
	ThrottleAllowed: {"allowed", metrics.Metric{Field: "throttle_allowed", JSON: "allowed"}, [2]string{"cl.throttle", "allowed"}},
	ThrottleLimited: {"limited", metrics.Metric{Field: "throttle_limited", JSON: "limited"}, [2]string{"cl.throttle", "limited"}},
	TakeAllowed:     {"allowed", metrics.Metric{Field: "take_allowed", JSON: "allowed"}, [2]string{"cl.take", "allowed"}},
	TakeLimited:     {"limited", metrics.Metric{Field: "take_limited", JSON: "limited"}, [2]string{"cl.take", "limited"}},
	CountAllowed:    {"allowed", metrics.Metric{Field: "count_allowed", JSON: "allowed"}, [2]string{"increx", "allowed"}},
	CountLimited:    {"limited", metrics.Metric{Field: "count_limited", JSON: "limited"}, [2]string{"increx", "limited"}},
	EnvoyAllowed:    {"allowed", metrics.Metric{Field: "envoy_allowed", JSON: "allowed"}, [2]string{"envoy", "allowed"}},
	EnvoyLimited:    {"limited", metrics.Metric{Field: "envoy_limited", JSON: "limited"}, [2]string{"envoy", "limited"}},
	Blocked:         {stats: "blocked"},
	RuleDenied: {stats: "rule_denied", total: metrics.Metric{Field: "rule_denied", Name: "celld_rule_denials_total",
		Help: "Calls that a rule denied."}},
	ShadowLimited:  {stats: "shadow_limited", total: shadowed("shadow_limited", "limited")},
	ShadowAllowed:  {stats: "shadow_allowed", total: shadowed("shadow_allowed", "allowed")},
	PartlyGranted:  {stats: "partly_granted"},
	AlsoAllowed:    {stats: "allowed"},
	AlsoRuleDenied: {stats: "rule_denied"},
	Near:           {stats: "near"},
	LimitedByOther: {stats: "limited_by_other", parts: [2]string{"cl.take", "limited_by_other"}},
}

func shadowed(field, decision string) metrics.Metric {
	return metrics.Metric{Field: field, Name: "celld_shadow_decisions_total", Labels: []string{"decision", decision},
		Help: "What limits with shadow would have decided."}
}

// Sum is a name of CL.STATS, and the kinds that it adds up.
type Sum struct {
	Name  string
	kinds []Kind
}

// Sums are all that CL.STATS says of a policy, in its order.
var Sums = sums()

func sums() (list []Sum) {
	for kind, names := range kindNames {
		at := slices.IndexFunc(list, func(s Sum) bool { return s.Name == names.stats })
		if at < 0 {
			at = len(list)
			list = append(list, Sum{Name: names.stats})
		}
		list[at].kinds = append(list[at].kinds, Kind(kind))
	}
	return list
}

// Of adds up.
func (s *Sum) Of(n *Counts) (sum int64) {
	for _, kind := range s.kinds {
		sum += n[kind]
	}
	return sum
}

// Decided is how many calls were allowed and limited, whatever their command.
func (n *Counts) Decided() (allowed, limited int64) {
	return n[ThrottleAllowed] + n[TakeAllowed] + n[CountAllowed] + n[EnvoyAllowed] + n[AlsoAllowed],
		n[ThrottleLimited] + n[TakeLimited] + n[CountLimited] + n[EnvoyLimited]
}

// declare adds the metrics of all policies.
func (n *Counts) declare(l *metrics.List) {
	for kind, names := range kindNames {
		if m := names.total; m.Field != "" {
			m.Value = n[kind]
			l.Counter(m)
		}
	}
}

// Add adds others.
func (n *Counts) Add(other *Counts) {
	for kind := range n {
		n[kind] += other[kind]
	}
}

// NearLimit is how many percent of a limit are used at most by a call that is not near; 100: no call is near.
type NearLimit struct{ atomic.Int64 }

// leastNear is the smallest limit that calls can be near to. Of smaller ones, one call uses much.
const leastNear = 10

// mostNear is a limit of which 100 times are no overflow. Nobody comes near to a larger one.
const mostNear = 1 << 56

// IsNear reports whether a call that passes with this decision has left little of its limit.
func (p *NearLimit) IsNear(d *cell.Decision) bool {
	return uint64(d.Limit-leastNear) < mostNear && d.Remaining*100 < d.Limit*(100-p.Load())
}

// Throttle counts a CL.THROTTLE under a limit of this capacity. A denying rule replaces the capacity in the decision by 0. A limit
// whose own capacity is 0 limits every call without a rule. It returns whether the call is near to its limit.
func (n *Counts) Throttle(d *cell.Decision, capacity int64, near *NearLimit) (isNear bool) {
	if !d.Limited {
		n[ThrottleAllowed]++
		if isNear = near.IsNear(d); isNear {
			n[Near]++
		}
		return isNear
	}
	n[ThrottleLimited]++
	if d.Limit != capacity {
		n[RuleDenied]++
	}
	return false
}

// Batch counts the decisions of a batch, by the rows to which they will be added.
//
// The first row stays when the batch is over, as the next one is often under the same: then a batch costs no more than one set of
// counters would.
type Batch struct {
	first rowDecisions
	more  []rowDecisions // may have a row twice
}

type rowDecisions struct {
	row *Row
	n   Counts
}

// mostDecided is how many entries a Batch has: 20 KB. One that is full counts at once, whatever becomes of its batch.
const mostDecided = 256

// Empty reports whether it counts no decision.
func (d *Batch) Empty() bool { return d.first.n == (Counts{}) && len(d.more) == 0 }

// In returns what is counted in a row, until the next call of In.
func (d *Batch) In(row *Row, lane uint8) *Counts {
	if d.first.row == row {
		return &d.first.n
	}
	return d.inMore(row, lane)
}

func (d *Batch) inMore(row *Row, lane uint8) *Counts {
	if d.Empty() {
		d.first.row = row
		return &d.first.n
	}
	for i := len(d.more) - 1; i >= max(0, len(d.more)-8); i-- {
		if r := &d.more[i]; r.row == row {
			return &r.n
		}
	}
	if len(d.more) == mostDecided {
		d.Settle(lane, nil)
	}
	d.more = append(d.more, rowDecisions{row: row})
	return &d.more[len(d.more)-1].n
}

// AddAll counts what another has counted.
func (d *Batch) AddAll(other *Batch, lane uint8) {
	if other.first.row != nil {
		d.In(other.first.row, lane).Add(&other.first.n)
	}
	for i := range other.more {
		r := &other.more[i]
		d.In(r.row, lane).Add(&r.n)
	}
}

// Settle adds the decisions to the totals unless err says that they are not on the disk.
func (d *Batch) Settle(lane uint8, err error) {
	if err == nil {
		d.first.row.add(lane, &d.first.n)
		for i := range d.more {
			r := &d.more[i]
			r.row.add(lane, &r.n)
		}
	}
	d.Clear()
}

// Clear forgets the counts.
func (d *Batch) Clear() {
	d.first.n = Counts{}
	d.more = d.more[:0]
}
