package cell_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/cell/lease"
)

func TestStateText(t *testing.T) {
	for _, text := range []string{
		"limit=30/1m,burst=16 tat=1763739000000000000",
		"limit=30/1m tat=0",
		"limit=30/1m,burst=1,warmup=1s,cold=2.5 free=1763739000000000000 warmth=1000000000",
		"limit=30/1m,burst=1,warmup=1s free=0 warmth=0 blocked=1",
		"limit=30/1m tat=18446744073709551615",
		"limit=100/1h,algo=window until=1763740800000000000 used=5",
		"limit=100/month,tz=+08:00 until=1763740800000000000 used=5 blocked=1763740800000000001",
		"limit=100/day,tz=Europe/Berlin until=1763740800000000000 used=5 before=100",
		"limit=100/1h,algo=window until=1763740800000000000 used=5 before=2147483647",
		"limit=100/1h,algo=window until=1763740800000000000 used=5 before=2147483648",
		"limit=100/1h,algo=window until=1763740800000000000 used=4294967296",
		"limit=9007199254740991/month until=1763740800000000000 used=9007199254740991 before=9007199254740991",
		"limit=9007199254740991/1m,algo=slide start=1763739000000000000 used=9007199254740991 before=9007199254740991",
		"limit=100/1h,algo=window until=1763740800000000000 used=5 before=1 blocked=1",
		"limit=100/1m,algo=slide start=1763739000000000000 used=5 before=3",
		"limit=100/1m,algo=slide,buckets=3 newest=88186950 used=2,0,5",
		"limit=100/1m,algo=slide,buckets=3 newest=0 used=0,0,0",
		"limit=100/1m,algo=log calls=1763739000000000000:1,+1500:2",
		"limit=1/1m,algo=log calls=1763739000000000000:1,+1500:2,+0:3",
		"limit=100/1m,algo=log calls=",
		"limit=100/1m,algo=log calls= blocked=1",
		"limit=20/30s,algo=conc leases=1763739000000000:1763739030000000000:1",
		"limit=20/30s,algo=conc leases=7:10:1:b,9:10:0:nfedcba98765432100123456789abcdef,9:10:0:k00000000000000000000000000000000,8:11:9007199254740990 blocked=5",
		"limit=20/30s,algo=conc leases=",
		"limit=100/month,tz=+08:00 leases=9007199254740992:9223372036854775807:3:t1763739000000000000:b:n00000000000000000000000000000001",
		"limit=20/30s,burst=3 leases=", "limit=5/1m,algo=log leases=1:2:3:t1", "limit=5/1m,algo=slide,buckets=2 leases=1:2:3:t1",
	} {
		l, st, err := cell.ParseState(text)
		if err != nil || string(l.AppendState([]byte("> "), &st)) != "> "+text {
			t.Errorf("%s is %s, %v", text, l.AppendState(nil, &st), err)
		}
	}
	for _, text := range []string{
		"", "limit=", "limit=30/1m", "limit=30/1m ", "tat=0", "limit=30/1m tat=", "limit=30/1m tat=0 ", "limit=30/1m  tat=0",
		" limit=30/1m tat=0", "limit=30/1m tat=00", "limit=30/1m tat=+1", "limit=30/1m tat=-1", "limit=30/1m tat=1_0",
		"limit=30/1m tat=18446744073709551616", "limit=30/1m used=1", "limit=30/1m,burst=1,warmup=1s free=1 warmth=1000000001",
		"limit=30/1m,burst=1,warmup=1s free=18444670473709551616 warmth=1", "limit=30/1m,warmup=1s free=1",
		"limit=30/1m,shadow tat=0", "limit=30/1m,block=1s tat=0", "limit=30/1m tat=0 blocked=0",
		"limit=30/1m tat=0 blocked=9286616836854775808", "limit=30/1m tat=0 blocked=1 blocked=1", "limit=30/1m tat=0 x=1",
		"limit=1/1h,algo=window until=9286616836854775808 used=5", "limit=1/1h,algo=window until=1 used=9007199254740993",
		"limit=1/1h,algo=window used=1 until=1", "limit=1/1h,algo=window until=1 used=5 before=0",
		"limit=1/1h,algo=window until=1 used=0 before=1", "limit=1/1h,algo=window until=1 used=5 before=9007199254740993",
		"limit=1/1h,algo=window until=1 before=1 used=5",
		"limit=1/1m,algo=slide start=0 used=9007199254740993 before=3", "limit=1/1m,algo=slide start=0 used=4 before=9007199254740993",
		"limit=1/1m,algo=slide start=0 used=4", "limit=1/1m,algo=slide,buckets=3 newest=1 used=2,0",
		"limit=1/1m,algo=slide,buckets=3 newest=1 used=2,0,5,1", "limit=1/1m,algo=slide,buckets=3 newest=1 used=,,",
		"limit=1/1m,algo=slide,buckets=3 newest=461168602 used=0,0,0", "limit=1/1m,algo=slide,buckets=2 newest=1 used=9007199254740992,1",
		"limit=1/1m,algo=log calls=1", "limit=1/1m,algo=log calls=1:", "limit=1/1m,algo=log calls=:1", "limit=1/1m,algo=log calls=1:0",
		"limit=1/1m,algo=log calls=+1:1", "limit=1/1m,algo=log calls=1:1,", "limit=1/1m,algo=log calls=1:1,2:1",
		"limit=1/1m,algo=log calls=9223372036854775807:1,+1:1", "limit=1/1m,algo=log calls=1:9007199254740992,+1:1", "limit=1/1m,algo=log",
		"limit=1/1m,algo=log calls", "limit=1/1m,algo=conc", "limit=1/1m,algo=conc leases", "limit=1/1m,algo=conc leases=1",
		"limit=1/1m,algo=conc leases=1:2", "limit=1/1m,algo=conc leases=1:2:", "limit=1/1m,algo=conc leases=1:2:3:",
		"limit=1/1m,algo=conc leases=1:2:3,", "limit=1/1m,algo=conc leases=1:2:3,2:1:1", "limit=1/1m,algo=conc leases=9007199254740993:2:3",
		"limit=1/1m,algo=conc leases=1:9286616836854775808:3", "limit=1/1m,algo=conc leases=1:2:9007199254740993",
		"limit=1/1m,algo=conc leases=1:2:9007199254740993,2:3:1", "limit=1/1m,algo=conc leases=1:2:3:b:b",
		"limit=1/1m,algo=conc leases=1:2:3:b:t1",
		"limit=1/1m,algo=conc leases=1:2:3:t0", "limit=1/1m,algo=conc leases=1:2:3:n0000000000000000000000000000000",
		"limit=1/1m,algo=conc leases=1:2:3:n00000000000000000000000000000000",
		"limit=1/1m,algo=conc leases=1:2:3:n0000000000000000000000000000000A",
		"limit=1/1m,algo=conc leases=1:2:3,1:2:1:k00000000000000000000000000000001", "limit=1/1m,algo=conc leases=1:2:3:bx",
		"limit=1/1m,algo=conc leases=1:2:3:x", "limit=1/1m leases=1:2:3 tat=0",
	} {
		l, st, err := cell.ParseState(text)
		if err == nil || l != (cell.Limit{}) || !equal(st, cell.State{}) {
			t.Errorf("%s is %s, %v; want an error", text, l.AppendState(nil, &st), err)
		}
	}
}

// A state that was written and read again decides as the original.
func TestAStateReadBackDecidesAlike(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		kept, now := drawHistory(t, l, cell.Take, cell.Take, cell.Peek, cell.Force)
		if rapid.Bool().Draw(t, "another count") {
			old := l
			l = drawParams(t, plain(t, l))
			l.Carry(&kept, &old, now, now)
		}
		if rapid.Bool().Draw(t, "shift") {
			back := rapid.Int64Range(0, now).Draw(t, "set back by")
			l.Shift(&kept, -back)
			now -= back
		}
		text := string(l.AppendState(nil, &kept))
		of, read, err := cell.ParseState(text)
		if err != nil || of != plain(t, l) || string(of.AppendState(nil, &read)) != text {
			t.Fatalf("%s of %v is %s, %v", text, l, of.AppendState(nil, &read), err)
		}
		if l.EndNS(&kept) != l.EndNS(&read) {
			t.Fatalf("%s ends at %d, and kept at %d", text, l.EndNS(&read), l.EndNS(&kept))
		}
		var d cell.Decision
		for range rapid.IntRange(1, 10).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			if n := drawCost(t, l, d); rapid.IntRange(0, 3).Draw(t, "gives") == 0 && l.Give(&kept, now, n) != l.Give(&read, now, n) {
				t.Fatalf("%s gives back another part of %d", text, n)
			}
			cost, mode := drawCall(t, l, &kept, now, d)
			d = decide(&l, &kept, now, cost, mode)
			if got := decide(&l, &read, now, cost, mode); got != d {
				t.Fatalf("%s at %d, cost %d, mode %d:\nread %+v\nkept %+v", text, now, cost, mode, got, d)
			}
		}
	})
}

// Files may hold anything. A text that reads as a state is written back as it was read, and no use of it panics or leaves its range.
func FuzzParseState(f *testing.F) {
	for _, text := range []string{
		"limit=30/1m,burst=16 tat=1763739000000000000", "limit=1/366d,burst=291 tat=18446744073709551615 blocked=9223372036854775807",
		"limit=2147483647/month,tz=+08:00 until=9223372036854775807 used=9007199254740992",
		"limit=1/year,tz=-12:00 until=9223372036854775807 used=1",
		"limit=1/day,tz=America/St_Johns until=9223372036854775807 used=1 before=1",
		"limit=1/1us,algo=window until=9223372036854775807 used=1 before=1",
		"limit=7/month until=1800000000000000000 used=7 before=7",
		"limit=1/1us,algo=slide start=9223372036854775807 used=4294967295 before=4294967295",
		"limit=2147483647/366d,algo=slide start=1 used=1 before=4294967295",
		"limit=9007199254740991/1us,algo=slide start=1800000000000000000 used=9007199254740992 before=9007199254740992",
		"limit=9007199254740991/month until=1800000000000000000 used=9007199254740991 before=9007199254740991",
		"limit=1/2us,algo=slide,buckets=2 newest=9223372036854775 used=9007199254740991,1",
		"limit=3/1s,algo=slide,buckets=3 newest=0 used=1,1,1",
		"limit=3/366d,algo=slide,buckets=128 newest=1 used=" + strings.Repeat("1,", 127) + "1",
		"limit=9/1m,algo=slide,buckets=7 newest=3 used=7,0,0,0,0,0,0",
		"limit=1/1m,algo=log calls=1:1,+9223372036854775806:9007199254740991",
		"limit=3/1m,algo=log calls=0:1,+0:1,+0:1,+0:1,+59999999999:1", "limit=9/1m,algo=log calls= blocked=1",
		"limit=1/366d,burst=1,warmup=24d,cold=100 free=9223372036854775807 warmth=2073600000000000",
		"limit=9/1m,algo=log calls= blocked=1",
		"limit=9/1m,algo=conc leases=1:1800000000000000001:3:b,2:1800000000000000002:1,2:1800000000000000002:0:k00000000000000000000000000000001",
		"limit=2147483647/366d,algo=conc leases=0:9223372036854775807:9007199254740992", "limit=9/1m leases=5:9:1:t4",
		"limit=1/1m,algo=conc leases=0:0:0,2:8:0,2:8:0",
	} {
		f.Add(text, int64(aDayIn2027), int64(1))
		f.Add(text, int64(0), int64(cell.MaxCost))
		f.Add(text, int64(math.MaxInt64/8*7), int64(3))
	}
	f.Fuzz(func(t *testing.T, text string, now, n int64) {
		l, st, err := cell.ParseState(text)
		if err != nil {
			return
		}
		_, fields, _ := strings.Cut(text, " ")
		written := string(l.AppendState(nil, &st))
		if strings.HasPrefix(fields, "leases=") { // where one follows itself, the two become one
			again, same, err := cell.ParseState(written)
			if next := string(again.AppendState(nil, &same)); err != nil || next != written {
				t.Fatalf("%s is written %s, and then %s, %v", text, written, next, err)
			}
		} else if written != "limit="+l.String()+" "+fields {
			t.Fatalf("%s is written %s", text, written)
		}
		if now &= math.MaxInt64; now > math.MaxInt64-2*cell.MaxPeriodNS {
			return
		}
		if !l.Leases {
			surviveAll(t, l, st, now, n&cell.MaxCost)
		}
		if l.HoldsLeases() {
			surviveLeases(t, l, st, now, uint64(n)&lease.MaxID)
		}
	})
}

// Numbers at every bound, of every algorithm.
func TestHostileStatesStayInRange(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		l = plain(t, l)
		number := func(most uint64, name string) string {
			return strconv.FormatUint(rapid.OneOf(
				rapid.SampledFrom([]uint64{0, min(1, most), most, most - most/2, min(aDayIn2027, most)}),
				rapid.Uint64Range(0, most),
				rapid.Uint64Range(0, min(most, uint64(2*l.Capacity()))),
			).Draw(t, name), 10)
		}
		text := "limit=" + l.String()
		switch {
		case l.Algo == cell.GCRA:
			text += " tat=" + number(math.MaxUint64, "TAT")
		case l.Algo == cell.Window:
			text += " until=" + number(math.MaxInt64, "until") + " used=" + number(1<<53, "used")
			if !strings.HasSuffix(text, "used=0") && rapid.Bool().Draw(t, "booked") {
				if before := number(1<<53, "before"); before != "0" {
					text += " before=" + before
				}
			}
		case l.Algo == cell.Log:
			calls := []string{number(math.MaxInt64, "time") + ":" + number(1<<53, "cost")}
			for range rapid.IntRange(0, 5).Draw(t, "calls") {
				calls = append(calls, "+"+number(math.MaxInt64/8, "wait")+":"+number(1<<50, "cost"))
			}
			text += " calls=" + strings.Join(calls, ",")
		case l.Algo == cell.Conc:
			var all []string
			for i := range rapid.IntRange(0, 5).Draw(t, "leases") {
				all = append(all, number(1<<53, "ID")+":"+strconv.Itoa(i*aDayIn2027)+":"+number(1<<50, "cost"))
			}
			text += " leases=" + strings.Join(all, ",")
		case l.Buckets > 0:
			counters := make([]string, l.Buckets)
			for i := range counters {
				counters[i] = number(1<<52/uint64(l.Buckets), "counter")
			}
			text += " newest=" + number(math.MaxInt64/uint64(l.PeriodNS)*uint64(l.Buckets), "newest") + " used=" +
				strings.Join(counters, ",")
		case l.Algo == cell.Slide:
			text += " start=" + number(math.MaxInt64, "start") + " used=" + number(1<<53, "used") +
				" before=" + number(1<<53, "before")
		default:
			t.Fatalf("no states of %v are drawn", l)
		}
		_, st, err := cell.ParseState(text)
		if err != nil {
			return // too much, or no call at all, in a log
		}
		anyTime := rapid.Int64Range(0, math.MaxInt64-2*cell.MaxPeriodNS)
		now := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, aDayIn2027}), anyTime).Draw(t, "now")
		surviveAll(t, l, st, now, rapid.Int64Range(0, cell.MaxCost).Draw(t, "n"))
	})
}

// surviveAll does all that is done with a state.
func surviveAll(t rapid.TB, l cell.Limit, st cell.State, now, n int64) {
	for _, mode := range []cell.Mode{cell.Take, cell.Peek, cell.Force} {
		for _, cost := range []int64{0, 1, n, l.Capacity(), cell.MaxCost} {
			wantSane(t, l, st, now, cost, mode)
		}
	}
	given := clone(st)
	if back := l.Give(&given, now, n); back < 0 || back > n {
		t.Fatalf("%d given back of %d", back, n)
	}
	wantSane(t, l, given, now, 1, cell.Take)
	for _, text := range []string{
		"1/366d", "2147483647/366d", "10/1us,burst=2147483647", "3/month,tz=+14:00", "1/366d,algo=slide", "7/7us,algo=slide,buckets=7",
		"3/366d,algo=log",
	} {
		other, carried := mustLiteral(t, text), clone(st)
		other.Carry(&carried, &l, now, now)
		wantSane(t, other, carried, now, 1, cell.Take)
	}
	for _, count := range []string{"1", "2", "2147483647"} {
		_, period, _ := strings.Cut(l.String(), "/")
		if other, err := cell.ParseLimit(count + "/" + period); err == nil {
			carried := clone(st)
			other.Carry(&carried, &l, now, now)
			wantSane(t, other, carried, now, 1, cell.Force)
		}
	}
	for _, ns := range []int64{0, 1, n, now, math.MaxInt64} {
		for _, by := range []int64{-ns - 1, -ns, ns} {
			shifted := clone(st)
			l.Shift(&shifted, by)
			wantSane(t, l, shifted, now, 1, cell.Take)
			wantSane(t, l, shifted, max(0, now+min(by, 0)), 1, cell.Take)
		}
	}
}

// surviveLeases does all that is done with leases.
func surviveLeases(t rapid.TB, l cell.Limit, st cell.State, now int64, id uint64) {
	change := func(do func(*cell.State)) {
		changed := clone(st)
		do(&changed)
		l.EndNS(&changed)
		text := string(l.AppendState(nil, &changed))
		if _, _, err := cell.ParseState(text); err != nil {
			t.Fatalf("%s is written, and not read: %v", text, err)
		}
	}
	for _, id := range []uint64{id, 1, 2} {
		st.Leases().Find(id, now)
		st.Leases().Links(id, now)
		change(func(st *cell.State) { st.Leases().Drop(id, now) })
		change(func(st *cell.State) { st.Leases().Renew(id, uint64(now)) })
		change(func(st *cell.State) { st.Leases().Renew(id, math.MaxInt64) })
	}
	st.Leases().FindNamed([2]uint64{0, 1}, now)
	change(func(st *cell.State) { st.Leases().EndBound(now) })
	change(func(st *cell.State) { l.Shift(st, -now) })
}

// wantSane decides, and holds the decision to what is true of every one.
func wantSane(t rapid.TB, l cell.Limit, st cell.State, now, cost int64, mode cell.Mode) {
	t.Helper()
	st = clone(st)
	blocked := st.BlockedNS > uint64(now)
	d := decide(&l, &st, now, cost, mode)
	if d.Limit != l.Capacity() || d.Remaining < 0 || d.Remaining > d.Limit ||
		d.Limited && (cost == 0 && !blocked || mode == cell.Force || d.RetryAfterNS == 0) {
		t.Fatalf("%v at %d, cost %d, mode %d: %+v", l, now, cost, mode, d)
	}
	if end := max(l.EndNS(&st), uint64(now)); d.ResetAfterNS != end-uint64(now) {
		t.Fatalf("%v at %d, cost %d, mode %d: %+v, and it ends at %d", l, now, cost, mode, d, end)
	}
	if d.RetryAfterNS != cell.Never && d.RetryAfterNS > d.ResetAfterNS {
		t.Fatalf("%v at %d, cost %d, mode %d: to retry when there is nothing left: %+v", l, now, cost, mode, d)
	}
	text := string(l.AppendState(nil, &st))
	if _, _, err := cell.ParseState(text); err != nil {
		t.Fatalf("%s is written, and not read: %v", text, err)
	}
}
