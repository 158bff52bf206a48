package decisions

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"celld/cell"
	"celld/resp/metrics"
	"celld/store/policy"
)

// Rows of policies that come and go are dropped. Their counts are not.
func TestRowsOfPoliciesThatGo(t *testing.T) {
	policies, _ := set(t, "stays")
	rows := NewRows(policies)
	count := func(name string) {
		rows.Of(policies.PolicyNamed(name).Limits[0]).add(0, &Counts{TakeAllowed: 1})
	}
	count("stays")
	const others = 3 * manyRows
	limit, _ := cell.ParseLimit("9/1h")
	for _, name := range names(mostPolicyNames - 1 + others) {
		if _, err := policies.SetPolicy(name, []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		count(name)
		policies.DeletePolicy(name)
	}
	if n := len(rows.rows); n > manyRows {
		t.Errorf("%d rows", n)
	}
	counts := rows.List()
	if len(counts) != 2+mostPolicyNames || counts[1].Policy != "other" || counts[1].Counts[TakeAllowed] != others ||
		counts[2].Policy != "stays" || counts[2].Counts[TakeAllowed] != 1 {
		t.Errorf("%d: %+v", len(counts), counts[:3])
	}
	if got := rows.Sum(); got != (Counts{TakeAllowed: mostPolicyNames + others}) {
		t.Errorf("%v in all", got)
	}
}

// CL.STATS counts since its reset, metrics since the start.
func TestResetOfRows(t *testing.T) {
	policies, _ := set(t, "p")
	rows := NewRows(policies)
	p := rows.Of(policies.PolicyNamed("p").Limits[0])
	for range 2 {
		p.add(1, &Counts{TakeLimited: 2, Blocked: 1})
		rows.Literal(cell.GCRA).add(3, &Counts{ThrottleAllowed: 5})
		if got, _ := rows.SinceReset("p"); got != (Counts{TakeLimited: 2, Blocked: 1}) {
			t.Errorf("@p: %v", got)
		}
		if got := rows.LiteralsSinceReset(); got != (Counts{ThrottleAllowed: 5}) {
			t.Errorf("literals: %v", got)
		}
		rows.Reset()
	}
	fields, decided := map[string]any{}, map[string]any{}
	for _, m := range metrics.New().Read(0, rows.Declare) {
		if m.Field != "" {
			fields[m.Field] = m.Value
		}
		if m.Name == "celld_decisions_total" {
			decided[fmt.Sprint(m.Labels)] = m.Value
		}
	}
	got := fmt.Sprint(fields)
	if got != "map[count_allowed:0 count_limited:0 envoy_allowed:0 envoy_limited:0 rule_denied:0 shadow_allowed:0 shadow_limited:0 take_allowed:0 take_limited:4 throttle_allowed:10 throttle_limited:0]" {
		t.Error(got)
	}
	if got := fmt.Sprint(decided); got != "map[[command cl.take policy p algorithm gcra decision limited period 1h]:4 [command cl.throttle policy literals algorithm gcra decision allowed period ]:10 [command cl.throttle policy literals algorithm gcra decision limited period ]:0]" {
		t.Error(got)
	}
}

// A batch counts what it has gathered at its end, unless its changes are not on the disk. One that is full counts at once.
func TestBatch(t *testing.T) {
	a, b := newRow(1), newRow(1)
	var d, other Batch
	if !d.Empty() {
		t.Error("a new batch has decisions")
	}
	for range 3 {
		d.In(a, 0)[TakeAllowed]++
		d.In(b, 0)[TakeLimited]++
	}
	if a.read() != (Counts{}) || d.Empty() || len(d.more) != 1 {
		t.Errorf("%+v, %v", d, a.read())
	}
	other.In(b, 0)[TakeLimited]++
	other.AddAll(&d, 0)
	d.Settle(0, errors.New("the disk is full"))
	if !d.Empty() || a.read() != (Counts{}) {
		t.Errorf("%+v, %v", d, a.read())
	}
	other.Settle(0, nil)
	if a.read() != (Counts{TakeAllowed: 3}) || b.read() != (Counts{TakeLimited: 4}) || !other.Empty() {
		t.Errorf("%v, %v", a.read(), b.read())
	}
	for range 2 * mostDecided {
		d.In(newRow(1), 0)[TakeAllowed]++
		d.In(b, 0)[TakeLimited]++
	}
	if n := b.read()[TakeLimited]; len(d.more) > mostDecided || n < mostDecided/2 {
		t.Errorf("%d entries, %d counted", len(d.more), n)
	}
}

// A limited call under another limit than its own was denied by a rule.
func TestCountsOfThrottle(t *testing.T) {
	var n Counts
	var never NearLimit
	never.Store(100)
	n.Throttle(&cell.Decision{Limit: 5}, 5, &never)
	n.Throttle(&cell.Decision{Limited: true, Limit: 5}, 5, &never)
	n.Throttle(&cell.Decision{Limited: true, Limit: 0}, 5, &never)
	n.Throttle(&cell.Decision{Limited: true, Limit: 0}, 0, &never)
	if n != (Counts{ThrottleAllowed: 1, ThrottleLimited: 3, RuleDenied: 1}) {
		t.Error(n)
	}
}

// A call that passes is near where it leaves less of a limit of 10 or more than is set.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		percent, limit, remaining int64
		near                      bool
	}{
		{80, 10, 2, false}, {80, 10, 1, true}, {80, 9, 0, false}, {80, 100, 20, false}, {80, 100, 19, true}, {80, 0, 0, false},
		{80, 1<<53 - 1, 1 << 50, true}, {80, 1<<53 - 1, 1 << 52, false}, {80, 1 << 62, 0, false}, {1, 100, 99, false}, {1, 100, 98, true},
		{100, 10, 0, false}, {99, 10, 0, true}, {80, 101, 20, true}, {80, 104, 21, false},
	} {
		var p NearLimit
		p.Store(c.percent)
		n, d := Counts{}, cell.Decision{Limit: c.limit, Remaining: c.remaining}
		n.Throttle(&d, c.limit, &p)
		if near := n[Near] == 1; near != c.near || near != p.IsNear(&d) {
			t.Errorf("%+v: %v", c, near)
		}
		d.Limited = true
		if n.Throttle(&d, c.limit, &p); n[Near] > 1 || n[ThrottleLimited] != 1 {
			t.Errorf("%+v: a denied call is near", c)
		}
	}
}

// A policy whose limits change for ever keeps few rows, and a call that it also allowed is allowed in metrics.
func TestRowsOfLimitsThatGo(t *testing.T) {
	policies, _ := set(t)
	rows := NewRows(policies)
	for n := range 3 * mostLimitRows {
		limit, _ := cell.ParseLimit(fmt.Sprintf("9/%ds", n+1))
		if _, err := policies.SetPolicy("p", []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		rows.Of(policies.PolicyNamed("p").Limits[0]).add(0, &Counts{AlsoAllowed: 1})
	}
	if n, bound := rows.SinceReset("p"); len(bound) != mostLimitRows || n != (Counts{AlsoAllowed: 3 * mostLimitRows}) {
		t.Errorf("%d rows, %v", len(bound), n)
	}
	allowed := int64(0)
	for _, m := range metrics.New().Read(0, rows.Declare) {
		if m.Name == "celld_decisions_total" && slices.Contains(m.Labels, "p") {
			allowed += m.Value.(int64)
		}
	}
	if allowed != 3*mostLimitRows {
		t.Errorf("%d are allowed", allowed)
	}
}
