package cell_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// params are a limit's parameters as a caller writes them.
type params struct{ maxBurst, count, period int64 }

// check returns the parameter that is out of range, "zero rate", or "" where all is well, in the order of the checks.
func (p params) check() string {
	capacity := new(big.Int).Add(big.NewInt(p.maxBurst), big.NewInt(1))
	switch {
	case p.count == 0 || p.period == 0:
		return "zero rate"
	case p.period < -maxPeriodSeconds || p.period > maxPeriodSeconds:
		return "period"
	case p.interval().Sign() == 0:
		return "zero rate"
	case p.maxBurst < -1 || p.maxBurst == math.MaxInt64: // max burst + 1 does not fit
		return "max_burst"
	case p.count < 0:
		return "count"
	case p.period < 0:
		return "period"
	case !capacity.Mul(capacity, p.interval()).IsInt64():
		return "max_burst"
	}
	return ""
}

// interval is period / count, with the 53 bits of a float64 at each step and then without its fraction.
func (p params) interval() *big.Int {
	float := func(n *big.Int) *big.Float { return new(big.Float).SetPrec(53).SetInt(n) }
	periodNS := new(big.Int).Mul(big.NewInt(p.period), big.NewInt(1_000_000_000))
	interval, _ := new(big.Float).Quo(float(periodNS), float(big.NewInt(p.count))).Int(nil)
	return interval
}

func (p params) tolerance() *big.Int {
	tolerance := new(big.Int).Add(big.NewInt(p.maxBurst), big.NewInt(1))
	return tolerance.Mul(tolerance, p.interval())
}

// throttle is the algorithm as redis-cell writes it, in instants and without bounds. ok is false where the cost of the
// quantity passes int64 nanoseconds.
func (p params) throttle(storedTAT uint64, nowNS, quantity int64) (next uint64, d cell.Decision, ok bool) {
	interval, tolerance := p.interval(), p.tolerance()
	increment := new(big.Int).Mul(interval, big.NewInt(quantity))
	if new(big.Int).Abs(increment).Cmp(big.NewInt(math.MaxInt64)) > 0 {
		return storedTAT, cell.Decision{}, false
	}
	now := big.NewInt(nowNS)
	tat := new(big.Int).SetUint64(storedTAT)
	if tat.Cmp(now) < 0 {
		tat = now
	}
	newTAT := new(big.Int).Add(tat, increment)
	if newTAT.Cmp(now) < 0 { // a refund past full
		newTAT = now
	}
	allowAt := new(big.Int).Add(tat, increment)
	allowAt.Sub(allowAt, tolerance)

	d = cell.Decision{Limit: p.maxBurst + 1, RetryAfterNS: cell.Never, Limited: now.Cmp(allowAt) < 0}
	next = storedTAT
	ttl := new(big.Int)
	switch {
	case !d.Limited:
		ttl.Sub(newTAT, now)
		if quantity != 0 {
			next = newTAT.Uint64()
		}
	case increment.Cmp(tolerance) <= 0:
		d.RetryAfterNS = new(big.Int).Sub(allowAt, now).Uint64()
		fallthrough
	default:
		ttl.Sub(tat, now)
	}
	d.ResetAfterNS = ttl.Uint64()
	if remaining := new(big.Int).Sub(tolerance, ttl); remaining.Sign() > 0 {
		d.Remaining = remaining.Quo(remaining, interval).Int64()
	}
	return next, d, true
}

// agree compares one call, from the parameters on, with the model.
func agree(t rapid.TB, p params, tat uint64, now, quantity int64) {
	t.Helper()
	limit, err := cell.NewBucket(p.maxBurst, p.count, p.period)
	if got, want := fault(err), p.check(); got != want {
		t.Fatalf("NewBucket%+v: %q, and the model says %q", p, got, want)
	}
	if err != nil {
		return
	}
	next, d, err := limit.Throttle(tat, now, quantity)
	wantNext, want, ok := p.throttle(tat, now, quantity)
	if !ok {
		if fault(err) != "quantity" || next != tat {
			t.Fatalf("%+v at TAT %d, now %d, quantity %d: %d, %v; want an error about quantity", p, tat, now, quantity, next, err)
		}
		return
	}
	if err != nil || d != want || next != wantNext {
		t.Fatalf("%+v at TAT %d, now %d, quantity %d\n got %d, %+v, %v\nwant %d, %+v", p, tat, now, quantity, next, d, err, wantNext, want)
	}
}

// fault names what an error is about as params.check does.
func fault(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, cell.ErrZeroRate) {
		return "zero rate"
	}
	if e, ok := errors.AsType[*cell.RangeError](err); ok {
		return e.Param
	}
	return "another error: " + err.Error()
}

// Limits that a caller may write, in states that they and other limits leave behind.
func TestSameAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, math.MaxInt64).Draw(t, "now")
		agree(t, s.params, s.drawTAT(t, now), now, s.drawQuantity(t))
	})
}

// Anything at all, with parameters near every bound among it.
func TestSameAsTheModelForHostileParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params{anyInt64().Draw(t, "max burst"), anyInt64().Draw(t, "count"), anyInt64().Draw(t, "period")}
		agree(t, p, rapid.Uint64().Draw(t, "TAT"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "now"), anyInt64().Draw(t, "quantity"))
	})
}

func FuzzThrottle(f *testing.F) {
	const now = aDayIn2027
	f.Add(int64(15), int64(30), int64(60), uint64(0), int64(now), int64(1))
	f.Add(int64(-1), int64(1), int64(31_536_000), uint64(now+1), int64(now), int64(0))
	f.Add(int64(153722866), int64(1), int64(60), uint64(math.MaxUint64), int64(0), int64(-153722867))
	f.Add(int64(math.MaxInt64-1), int64(1_000_000_000), int64(1), uint64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), uint64(1), int64(1), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, maxBurst, count, period int64, tat uint64, now, quantity int64) {
		if now >= 0 {
			agree(t, params{maxBurst, count, period}, tat, now, quantity)
		}
	})
}
