package cell_test

import (
	"errors"
	"math"
	"testing"

	"celld/cell"

	"pgregory.net/rapid"
)

// redisGCRA is the arithmetic of GCRA as Redis specifies it, in µs: what it answers, and the next TAT.
func redisGCRA(c cell.TokenCall, tatUS, nowUS int64) (reply [5]int64, next int64) {
	interval := max(1, int64(c.PeriodS*1e6/float64(c.PerPeriod)+0.5))
	variance, increment := interval*(c.MaxBurst+1), interval*c.Tokens
	next = max(nowUS, tatUS) + increment
	diff := nowUS - (next - variance)
	reply = [5]int64{0, c.MaxBurst + 1, 0, -1, 0}
	ttl := next - nowUS
	if diff < 0 {
		reply[0], ttl, next = 1, tatUS-nowUS, tatUS
		if increment <= variance {
			reply[3] = int64(math.Ceil(float64(-diff) / 1e6))
		}
	}
	if left := variance - ttl; left > -interval {
		reply[2] = left / interval
	}
	reply[4] = int64(math.Ceil(float64(ttl) / 1e6))
	return reply, next
}

// Calls at whole µs, as Redis's are, are decided as Redis does. A key whose TAT has passed is gone in both.
func TestTokensAsInRedis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cell.TokenCall{
			MaxBurst:  rapid.SampledFrom([]int64{0, 1, 2, 5, 100, 1_000_000}).Draw(t, "max burst"),
			PerPeriod: rapid.SampledFrom([]int64{1, 2, 3, 7, 30, 999_983, 30_000_000}).Draw(t, "per period"),
			PeriodS:   rapid.SampledFrom([]float64{0.000_000_1, 0.001, 0.3, 1, 1.5, 10, 60, 86_400}).Draw(t, "period"),
		}
		nowUS := int64(1_700_000_000_000_000)
		tatUS, tatNS := nowUS, uint64(nowUS)*1000
		for range 30 {
			nowUS += rapid.SampledFrom([]int64{0, 0, 1, 999, 100_000, 1_000_000, 61_000_000}).Draw(t, "pass")
			if tatUS < nowUS {
				tatUS = nowUS
			}
			c.Tokens = rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 101, 1 << 40}).Draw(t, "tokens")
			l, quantity, err := c.Bucket()
			if err != nil { // 292,000 years
				continue
			}
			want, next := redisGCRA(c, tatUS, nowUS)
			nextNS, d, err := l.Throttle(tatNS, nowUS*1000, quantity)
			if err != nil {
				t.Fatal(err)
			}
			retry := int64(-1)
			if d.RetryAfterNS != cell.Never {
				retry = ceilSeconds(d.RetryAfterNS)
			}
			got := [5]int64{0, d.Limit, d.Remaining, retry, ceilSeconds(d.ResetAfterNS)}
			if d.Limited {
				got[0] = 1
			}
			if got != want || max(nextNS, uint64(nowUS)*1000) != uint64(next)*1000 {
				t.Fatalf("%+v at %d with TAT %d: %v, then %d; want %v, then %d", c, nowUS, tatUS, got, nextNS, want, next)
			}
			tatUS, tatNS = next, nextNS
		}
	})
}

func ceilSeconds(ns uint64) int64 { return int64(math.Ceil(float64(ns) / 1e9)) }

func TestTokensThatDoNotFit(t *testing.T) {
	const year = 365.25 * 86_400
	for _, tt := range []struct {
		call  cell.TokenCall
		wrong string
	}{
		{cell.TokenCall{MaxBurst: 1, PerPeriod: 1, PeriodS: 86_400, Tokens: 200_000_000}, "tokens"},
		{cell.TokenCall{MaxBurst: 200_000_000, PerPeriod: 1, PeriodS: 86_400, Tokens: 1}, "max_burst"},
		{cell.TokenCall{MaxBurst: 1, PerPeriod: 1, PeriodS: math.MaxInt32, Tokens: math.MaxInt32}, "tokens"},
		{cell.TokenCall{MaxBurst: math.MaxInt64, PerPeriod: math.MaxInt64, PeriodS: 1e-300, Tokens: math.MaxInt64}, "max_burst"},
		{cell.TokenCall{MaxBurst: 0, PerPeriod: 1, PeriodS: 146 * year, Tokens: 1}, ""},
		{cell.TokenCall{MaxBurst: 0, PerPeriod: 1, PeriodS: 147 * year, Tokens: 1}, "max_burst"},
		{cell.TokenCall{MaxBurst: 0, PerPeriod: 1, PeriodS: 999_999_999_999, Tokens: 1}, "max_burst"},
		{cell.TokenCall{MaxBurst: 1, PerPeriod: 1, PeriodS: 86_400, Tokens: 100_000_000}, ""},
	} {
		l, quantity, err := tt.call.Bucket()
		var outOfRange *cell.RangeError
		switch {
		case tt.wrong == "" && err != nil, tt.wrong != "" && (!errors.As(err, &outOfRange) || outOfRange.Param != tt.wrong):
			t.Errorf("%+v: %v", tt.call, err)
		case err == nil:
			if _, _, err := l.Throttle(0, 1_700_000_000_000_000_000, quantity); err != nil {
				t.Errorf("%+v: %v", tt.call, err)
			}
		}
	}
}
