package cell_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// counting is the text of a log without the calls that no longer count. The log may forget these at any time.
func counting(l cell.Limit, st cell.State, now int64) string {
	st = clone(st)
	l.Give(&st, now, 0)
	return string(l.AppendState(nil, &st))
}

// drawCalls takes from a log: few calls or many, one after the other, at the same instant, or after a while.
func drawCalls(t *rapid.T, l cell.Limit, st *cell.State, now int64) int64 {
	for range rapid.IntRange(0, 3).Draw(t, "bursts") {
		pause := rapid.SampledFrom([]int64{0, 1, l.PeriodNS / 150, l.PeriodNS / 2, l.PeriodNS, 2 * l.PeriodNS}).Draw(t, "pause")
		step := rapid.SampledFrom([]int64{0, 1, max(1, l.PeriodNS/100)}).Draw(t, "step")
		cost := rapid.Int64Range(1, 3).Draw(t, "cost")
		now += pause
		for range rapid.SampledFrom([]int{1, 2, 63, 64, 65, 130}).Draw(t, "calls") {
			mode := rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Force}).Draw(t, "mode")
			l.Fit(st, now, 1)
			decide(&l, st, now, cost, mode)
			now += step
		}
	}
	return now
}

var partLimits = []string{"1/1s,algo=log", "3/1s,algo=log", "100/1s,algo=log", "500/1m,algo=log", "70/1s,algo=log,block=300ms"}

// fields is a copy of a log, in the fields of a hash.
type fields map[uint32]string

const whole = math.MaxUint32

// tell brings a copy up to date, and returns how many calls it has told.
func (f fields) tell(l cell.Limit, st *cell.State, told cell.Told) (next cell.Told, calls int) {
	if !told.Known() {
		clear(f)
	}
	for p := range l.Parts(st, told) {
		number, text := p.Number, string(l.AppendPart(nil, st, p))
		if p.Whole {
			number = whole
		}
		f[number] = text
		calls += strings.Count(text, ":")
	}
	return l.Tell(st, told), calls
}

// state reads a copy, whose fields are in no order.
func (f fields) state(t rapid.TB, l cell.Limit) (st cell.State) {
	type part struct {
		st    cell.State
		after int64
	}
	var parts []part
	for number, text := range f {
		var of cell.Limit
		var p part
		var err error
		if number == whole {
			of, st, err = cell.ParseState(text)
		} else {
			of, p.st, p.after, err = cell.ParsePart(text)
			parts = append(parts, p)
		}
		if err != nil || of != plain(t, l) {
			t.Fatalf("%s is of %v, %v", text, of, err)
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.after, b.after) })
	for _, p := range parts {
		if !l.Join(&st, &p.st, p.after) {
			t.Fatalf("%v cannot be joined", p)
		}
	}
	return st
}

// A copy that is told what is new of a log, however often, holds all that counts, and can be told in steps.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLiteral(t, rapid.SampledFrom(partLimits).Draw(t, "limit"))
		var st, followed cell.State
		var told cell.Told
		f, now := fields{}, int64(aDayIn2027)
		for range rapid.IntRange(1, 12).Draw(t, "tells") {
			words := len(st.Ring)
			now = drawCalls(t, l, &st, now)
			if len(st.Ring) != words {
				told = cell.Told{}
			}
			before := maps.Clone(f)
			if !told.Known() {
				followed, before = cell.State{}, fields{}
			}
			told, _ = f.tell(l, &st, told)
			changed := fields{}
			for number, text := range f {
				if before[number] != text {
					changed[number] = text
				}
			}
			if text, isWhole := changed[whole]; isWhole {
				_, followed, _ = cell.ParseState(text)
				delete(changed, whole)
			}
			for _, text := range sortedByAfter(t, changed) {
				_, part, after, _ := cell.ParsePart(text)
				for range rapid.IntRange(1, 2).Draw(t, "times") {
					if !l.Join(&followed, &part, after) {
						t.Fatalf("%s cannot be joined", text)
					}
				}
			}
			wantSameDecisions(t, l, f.state(t, l), st, now)
			wantSameDecisions(t, l, followed, st, now)
			if n := len(followed.Ring) / 2; n > 2*max(int(l.Count), 64) {
				t.Fatalf("who followed %v has room for %d calls", l, n)
			}
		}
	})
}

// wantSameDecisions compares two states of a log by all that they decide until they are over. A copy may have calls apart that
// Force has merged in the log.
func wantSameDecisions(t *rapid.T, l cell.Limit, got, want cell.State, now int64) {
	if got, want := l.EndNS(&got), l.EndNS(&want); got != want && max(got, want) > uint64(now) {
		t.Fatalf("%v: it ends at %d, want %d", l, got, want)
	}
	for range 20 {
		for _, cost := range []int64{0, 1, (l.Count + 1) / 2, l.Count} {
			if a, b := attempt(&l, got, now, cost, cell.Take), attempt(&l, want, now, cost, cell.Take); a != b {
				t.Fatalf("cost %d at %d: %+v, want %+v\n of %s\nfor %s", cost, now, a, b, l.AppendState(nil, &got),
					l.AppendState(nil, &want))
			}
		}
		now += rapid.Int64Range(0, l.PeriodNS/10).Draw(t, "wait")
	}
}

func sortedByAfter(t rapid.TB, f fields) []string {
	after := func(text string) int64 {
		_, _, after, err := cell.ParsePart(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return after
	}
	return slices.SortedFunc(maps.Values(f), func(a, b string) int { return cmp.Compare(after(a), after(b)) })
}

// One more call adds at most 64 calls to what is told, and the one before it, whatever is in the log. A copy has no more parts than it
// needs.
func TestPartsAreSmall(t *testing.T) {
	l := mustLiteral(t, "10000/1m,algo=log")
	var st cell.State
	var told cell.Told
	f, now := fields{}, int64(aDayIn2027)
	for range 10_000 {
		decide(&l, &st, now, 1, cell.Take)
		now += l.PeriodNS / 10_000
	}
	told, all := f.tell(l, &st, told)
	if all != 10_000 || len(f) != 10_000/64+1 {
		t.Fatalf("told %d calls in %d fields", all, len(f))
	}
	most := 0
	for range 50_000 {
		decide(&l, &st, now, 1, cell.Take)
		now += l.PeriodNS / 10_000
		next, calls := f.tell(l, &st, told)
		told, most = next, max(most, calls)
	}
	if most > 65 {
		t.Errorf("told %d calls for one", most)
	}
	if len(f) > 10_000/63+4 {
		t.Errorf("a copy of %d fields", len(f))
	}
	if got, want := counting(l, f.state(t, l), now), counting(l, st, now); got != want {
		t.Errorf("the copy has %s, want %s", got, want)
	}
}

// A part is refused, and changes nothing, if the sum of the costs could no longer be counted.
func TestJoinTooMuch(t *testing.T) {
	l, st, err := cell.ParseState("limit=9/1m,algo=log calls=100:9007199254740000")
	if err != nil {
		t.Fatal(err)
	}
	before := clone(st)
	for text, want := range map[string]bool{
		"limit=9/1m,algo=log after=100 calls=101:993": false,
		"limit=9/1m,algo=log after=100 calls=101:992": true,
		"limit=9/1m,algo=log after=99 calls=101:993":  true,
	} {
		_, part, after, err := cell.ParsePart(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		joined := clone(before)
		if got := l.Join(&joined, &part, after); got != want || !got && !equal(joined, before) {
			t.Errorf("%s: %v, %s", text, got, l.AppendState(nil, &joined))
		}
	}
}

func TestParsePart(t *testing.T) {
	for _, text := range []string{
		"limit=9/1m,algo=log after=0 calls=1:1",
		"limit=9/1m,algo=log after=1763739000000000000 calls=1763739000000000001:1,+1500:2 blocked=5",
		"limit=9/1m,algo=log after=9223372036854775807 calls=",
	} {
		if _, _, _, err := cell.ParsePart(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "limit=9/1m,algo=log calls=1:1", "limit=9/1m,algo=log after=1 calls=1:1",
		"limit=9/1m,algo=log after=9223372036854775808 calls=", "limit=9/1m after=1 tat=2", "limit=9/1m,algo=window after=1 calls=2:1",
		"limit=9/1m,algo=log after=1 calls=2:1 blocked=0", "limit=9/1m,algo=log after=1", "limit=9/1m,algo=log,shadow after=1 calls=2:1",
		"limit=9/1m,algo=log after=1 calls=2:1 ",
	} {
		if _, st, _, err := cell.ParsePart(text); err == nil || !equal(st, cell.State{}) {
			t.Errorf("%s is read as %+v, %v", text, st, err)
		}
	}
}

// Files may hold anything. A text that reads as a part can be joined to one that reads as a log, or is refused, and nothing panics.
func FuzzParsePart(f *testing.F) {
	f.Add("limit=9/1m,algo=log after=0 calls=1:1", "limit=9/1m,algo=log calls=1:1,+5:2", int64(3))
	f.Add("limit=9/1m,algo=log after=3 calls=9:9007199254740992", "limit=9/1m,algo=log calls=1:1,+5:2", int64(1))
	f.Add("limit=9/1m,algo=log after=9223372036854775807 calls= blocked=9", "limit=9/1m,algo=log calls=", int64(0))
	f.Fuzz(func(t *testing.T, text, log string, n int64) {
		l, part, after, err := cell.ParsePart(text)
		of, st, err2 := cell.ParseState(log)
		if err != nil || err2 != nil || of.Algo != cell.Log || !l.Join(&st, &part, after) {
			return
		}
		written := string(l.AppendState(nil, &st))
		if _, read, err := cell.ParseState(written); err != nil || string(l.AppendState(nil, &read)) != written {
			t.Fatalf("%s, %v", written, err)
		}
		surviveAll(t, l, st, aDayIn2027, n&cell.MaxCost)
	})
}

// A copy that is told each call by itself holds all calls that count, wherever its parts begin. No part that still counts gives its
// number to another.
func TestPartsThatCountKeepTheirNumbers(t *testing.T) {
	for _, count := range []int64{64, 65, 100, 126, 127, 128, 129, 130, 189, 190, 191, 192, 193, 256} {
		l := mustLiteral(t, fmt.Sprintf("%d/1m,algo=log", count))
		var st cell.State
		var told cell.Told
		f, now := fields{}, int64(aDayIn2027)
		for range 6 * count {
			l.Fit(&st, now, 1)
			decide(&l, &st, now, 1, cell.Take)
			told, _ = f.tell(l, &st, told)
			if got, want := counting(l, f.state(t, l), now), counting(l, st, now); got != want {
				t.Fatalf("%d calls: the copy has %s\nwant %s", count, got, want)
			}
			now += l.PeriodNS / count
		}
	}
}

// A part takes the place of all calls after its instant, even if it is empty. Calls that have left the log do not count.
func TestJoin(t *testing.T) {
	l := mustLiteral(t, "10/1m,algo=log")
	for _, c := range []struct{ part, want string }{
		{"limit=10/1m,algo=log after=1800000000000000001 calls=", "limit=10/1m,algo=log calls=1800000000000000000:1,+1:2"},
		{"limit=10/1m,algo=log after=1800000000000000001 calls=1800000000000000005:4", "limit=10/1m,algo=log calls=1800000000000000000:1,+1:2,+4:4"},
		{"limit=10/1m,algo=log after=1800000000000000009 calls=1800000000000000010:4", "limit=10/1m,algo=log calls=1800000000000000000:1,+1:2,+1:3,+8:4"},
	} {
		var st cell.State
		for i := range int64(3) {
			decide(&l, &st, aDayIn2027+i, i+1, cell.Take)
		}
		words := len(st.Ring)
		_, part, after, err := cell.ParsePart(c.part)
		if err != nil {
			t.Fatalf("%s: %v", c.part, err)
		}
		if !l.Join(&st, &part, after) || string(l.AppendState(nil, &st)) != c.want || len(st.Ring) != words {
			t.Errorf("%s: %s in %d words, want %s in %d", c.part, l.AppendState(nil, &st), len(st.Ring), c.want, words)
		}
	}

	var st cell.State
	for i := range int64(5) { // the first four have counted as much as can be, and are gone
		decide(&l, &st, aDayIn2027+i*2*l.PeriodNS, math.MaxInt32, cell.Force)
	}
	st.B += 1 << 52
	for i := 1; i < len(st.Ring); i += 2 {
		st.Ring[i] += 1 << 52
	}
	_, part, after, _ := cell.ParsePart("limit=10/1m,algo=log after=1800000480000000001 calls=1800000480000000005:9007199254740000")
	if l.Join(&st, &part, after) {
		t.Error("joined to more than can be counted")
	}
	_, part, after, _ = cell.ParsePart("limit=10/1m,algo=log after=1800000480000000001 calls=1800000480000000005:9007197107256345")
	if !l.Join(&st, &part, after) {
		t.Error("not joined, though the calls before are gone")
	}
}
