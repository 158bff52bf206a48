package peers

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// moduleDifferences lists all that may differ between the replies of celld and of redis-cell 0.2.2. Not in it, so equal:
// limited, limit, remaining, the stored TAT, and which error comes first.
var moduleDifferences = []struct {
	why  string
	fits func(celld, module string) bool
}{
	{
		"0.2.2 cuts seconds off where 0.5.0 and celld round up from one whole millisecond on",
		func(celld, module string) bool {
			a, ok := harness.FiveInts(celld)
			b, ok2 := harness.FiveInts(module)
			if !ok || !ok2 || a[0] != b[0] || a[1] != b[1] || a[2] != b[2] || (a[3] == -1) != (b[3] == -1) {
				return false
			}
			return oneMore(a[3], b[3]) && oneMore(a[4], b[4])
		},
	},
	{
		"0.2.2 does not say where an error comes from",
		func(celld, module string) bool {
			return celld == strings.Replace(module, "-Cell error: ", "-Cell error: Store error: ", 1)
		},
	},
}

func oneMore(celld, module int64) bool { return celld == module || celld == module+1 }

// The module is not asked about what ends redis-server or has no meaning in 0.2.2; vectors.json covers these:
//   - keys and numbers that are not UTF-8, a stored value that is no number: it panics, and the process ends
//   - a count or period of 0, negative limits, products past int64: it divides by zero or wraps
//   - a refund past full: it fails and leaves a key without a TTL
//   - CR, LF and NUL in a number: its error line is broken by them, which breaks the protocol
//   - emission intervals near a microsecond: it counts `remaining` in whole microseconds

// modulePair is one connection to each of the two.
type modulePair struct {
	t             *testing.T
	celld, module *harness.Conn
}

func startModulePair(t *testing.T) *modulePair {
	path := harness.ModulePath(t)
	return &modulePair{t, harness.Dial(t, harness.Start(t).Addr), harness.Dial(t, celldtest.StartRedis(t, "--loadmodule", path))}
}

// differ sends the same call to both and says how the replies differ, or "".
func (p *modulePair) differ(args ...string) (celld, difference string) {
	p.t.Helper()
	celld, module := p.celld.Do(args...), p.module.Do(args...)
	if celld == module {
		return celld, ""
	}
	for _, d := range moduleDifferences {
		if d.fits(celld, module) {
			return celld, ""
		}
	}
	return celld, fmt.Sprintf("%q\n celld %q\nmodule %q", args, celld, module)
}

// TestModuleErrors sends arguments of every spelling, in every number.
func TestModuleErrors(t *testing.T) {
	t.Parallel()
	p, rnd := startModulePair(t), celldtest.NewRand(t)
	spellings := []string{
		"", " ", "+", "-", "+5", "-0", "007", "+0012", "0x10", "1e3", "1.0", "5 ", " 5", "5\t", "1_000", "1,000", "five", "٥", "５", "½",
		"--1", "+-1", "NaN", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "99999999999999999999999", "5%s%n",
		"\x7f", "\u2028", "👍", strings.Repeat("9", 300), "1", "2", "10", "60", "3600",
	}
	for range 3000 {
		args := []string{"CL.THROTTLE", randomKey(rnd)}
		for range 2 + rnd.IntN(5) {
			args = append(args, spellings[rnd.IntN(len(spellings))])
		}
		if len(args) == 5 || len(args) == 6 {
			if !hasBadInteger(args[2:]) {
				continue // a call, and the next test's
			}
		}
		if _, difference := p.differ(args...); difference != "" {
			t.Error(difference)
		}
	}
	for _, args := range [][]string{
		{"CL.THROTTLE"}, {"cl.throttle", "k"}, {"Cl.Throttle", "k", "1"}, {"CL.THROTTLE", "k", "1", "2", "3", "4", "5"},
	} {
		if _, difference := p.differ(args...); difference != "" {
			t.Error(difference)
		}
	}
}

func hasBadInteger(args []string) bool {
	for _, arg := range args {
		if _, err := strconv.ParseInt(arg, 10, 64); err != nil {
			return true
		}
	}
	return false
}

// rateLimit is a limit that redis-cell computes without a mistake. Its emission interval is at least a second, which is long against
// the delays of a test.
type rateLimit struct{ burst, count, period int64 }

func randomLimit(rnd *rand.Rand) rateLimit {
	period := int64(1) << rnd.IntN(26)
	period += rnd.Int64N(period)
	count := 1 + rnd.Int64N(min(period, 1000))
	burst := rnd.Int64N(20)
	if rnd.IntN(5) == 0 {
		burst = rnd.Int64N(min(100_000, 7e9/period)) - 1 // 222 years at most: a TAT beyond the year 2262 ends the module
	}
	return rateLimit{burst, count, period}.sharp()
}

// sharp makes the emission interval whole microseconds, which divide without a rest. Otherwise many rests could add up, and redis-cell
// would be off by one in `remaining`.
func (l rateLimit) sharp() rateLimit {
	if l.intervalNS()%1000 != 0 && l.burst > l.intervalNS()/1e8 {
		l.count = 1 << (bits.Len64(uint64(min(l.count, 64))) - 1)
	}
	return l
}

func (l rateLimit) intervalNS() int64 { return int64(float64(l.period*1e9) / float64(l.count)) }

func (l rateLimit) call(key string, quantity int64) []string {
	args := []string{"CL.THROTTLE", key, fmt.Sprint(l.burst), fmt.Sprint(l.count), fmt.Sprint(l.period)}
	if quantity == 1 {
		return args
	}
	return append(args, fmt.Sprint(quantity))
}

// quantity picks a cost: peeks, single calls, the edges of what the limit holds, and refunds of what was taken.
func (l rateLimit) quantity(rnd *rand.Rand, takenNS int64) int64 {
	refundable := (takenNS - 2e9) / l.intervalNS() // two seconds of margin, as a refund past full is none of 0.2.2's strengths
	switch rnd.IntN(8) {
	case 0:
		return 0
	case 1:
		return max(0, l.burst+rnd.Int64N(3))
	case 2:
		return 1 + rnd.Int64N(l.burst+2)
	case 3:
		if refundable > 0 {
			return -1 - rnd.Int64N(min(refundable, 5))
		}
	}
	return 1
}

// TestModuleSequences calls with changing limits on the same new key and compares every number.
func TestModuleSequences(t *testing.T) {
	t.Parallel()
	p, rnd := startModulePair(t), celldtest.NewRand(t)
	for range 400 {
		prefix, seed := randomKey(rnd), rnd.Uint64()
		celldtest.Again(t, func(attempt string) string { return p.sequence(prefix+attempt, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func (p *modulePair) sequence(key string, rnd *rand.Rand) (difference string) {
	limit, began, takenNS := randomLimit(rnd), time.Now(), int64(0)
	for range 3 + rnd.IntN(20) {
		if rnd.IntN(6) == 0 {
			limit = randomLimit(rnd)
		}
		quantity := limit.quantity(rnd, takenNS)
		celld, difference := p.differ(limit.call(key, quantity)...)
		if difference != "" {
			return difference
		}
		if ints, ok := harness.FiveInts(celld); ok && ints[0] == 0 {
			takenNS += quantity * limit.intervalNS()
		}
	}
	if takenNS == 0 {
		return ""
	}
	celld, module := p.celld.Do("GET", key), p.module.Do("GET", key)
	a, b := bulkInt(celld), bulkInt(module)
	if most := time.Since(began) + 50*time.Millisecond; (b - a).Abs() > most {
		return fmt.Sprintf("GET %q: celld %q, module %q: more than %v apart", key, celld, module, most)
	}
	// TTL rounds to the nearest second: half a second is one or the other, a moment later.
	if a, b := celldtest.IntReply(p.celld.Do("TTL", key)), celldtest.IntReply(p.module.Do("TTL", key)); a-b < -1 || a-b > 1 {
		return fmt.Sprintf("TTL %q: celld %d, module %d", key, a, b)
	}
	return ""
}

// bulkInt reads a TAT as a span of Unix time.
func bulkInt(raw string) time.Duration {
	text, _ := harness.Bulk(raw)
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n)
}

// TestModuleStoredTATs gives both the same TAT to start with. From then on, what they store does not depend on the clock, and is equal
// to the digit.
func TestModuleStoredTATs(t *testing.T) {
	t.Parallel()
	p, rnd := startModulePair(t), celldtest.NewRand(t)
	for range 400 {
		prefix, seed := randomKey(rnd), rnd.Uint64()
		celldtest.Again(t, func(attempt string) string { return p.storedTAT(prefix+attempt, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func (p *modulePair) storedTAT(key string, rnd *rand.Rand) (difference string) {
	const hour, year = int64(time.Hour), int64(365 * 24 * time.Hour)
	takenNS := hour << rnd.IntN(16)
	takenNS += rnd.Int64N(takenNS)
	tat := fmt.Sprint(time.Now().UnixNano() + takenNS)
	for _, c := range []*harness.Conn{p.celld, p.module} {
		if got := c.Do("SET", key, tat); got != "+OK\r\n" {
			p.t.Fatalf("SET %q %s: %q", key, tat, got)
		}
	}
	limit := rateLimit{period: hour/1e9 + rnd.Int64N(year/1e9), count: 1 + rnd.Int64N(1000)}
	limit.burst = rnd.Int64N(100 * year / limit.intervalNS())
	limit = limit.sharp()
	limit.burst = min(limit.burst, 100*year/limit.intervalNS())
	for range 2 + rnd.IntN(8) {
		quantity := limit.quantity(rnd, takenNS)
		began := time.Now().UnixNano()
		celld, difference := p.differ(limit.call(key, quantity)...)
		if difference != "" {
			return difference
		}
		a, b := p.celld.Do("GET", key), p.module.Do("GET", key)
		if a != b {
			return fmt.Sprintf("TAT %s, then %q: celld holds %q, module %q", tat, limit.call(key, quantity), a, b)
		}
		ints, ok := harness.FiveInts(celld)
		if !ok {
			return fmt.Sprintf("%q: %q", limit.call(key, quantity), celld)
		}
		if ints[0] == 0 {
			takenNS += quantity * limit.intervalNS()
		}
		most, least := roundUp(int64(bulkInt(a))-began), roundUp(int64(bulkInt(a))-time.Now().UnixNano())
		if ints[4] < least-1 || ints[4] > most {
			return fmt.Sprintf("%q: %v, but reset after is %d to %d", limit.call(key, quantity), ints, least, most)
		}
	}
	return ""
}

// roundUp gives whole seconds as redis-cell 0.5.0 does: up when there is at least one whole millisecond beside them.
func roundUp(ns int64) int64 {
	seconds := ns / 1e9
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}

// randomKey is any UTF-8: control characters, line breaks and NUL among them.
func randomKey(rnd *rand.Rand) string {
	var b strings.Builder
	for range rnd.IntN(24) {
		switch rnd.IntN(4) {
		case 0:
			b.WriteRune(rune(rnd.IntN(32)))
		case 1:
			b.WriteRune(rune(32 + rnd.IntN(96)))
		case 2:
			b.WriteRune(rune(0x80 + rnd.IntN(0xd000)))
		default:
			b.WriteRune(rune(0x10000 + rnd.IntN(0x100000)))
		}
	}
	fmt.Fprintf(&b, "%x", rnd.Uint32()) // and no two alike
	return b.String()
}
