package remote

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

// The scripts of buckets say in Lua what package cell says in Go. These tests draw what both are asked, up to the ends of what the scripts
// compute with, and compare the answers, and what the key holds then.

// drawnCase is a key that holds a TAT, on which a Store is to decide.
type drawnCase struct {
	*testing.T
	*Store
	nowNS   int64
	tat     uint64
	held    string // by the key, as text
	expires bool   // held, as a TAT does
	by      bool   // a script decides, and no view
	done    signal

	simulated bool // the engine's clock is nowNS
}

// onDrawn runs a property on both engines.
func onDrawn(t *testing.T, property func(t *rapid.T, c *drawnCase)) {
	var now atomic.Int64
	linktest.OnEngines(t, now.Load, func(t *testing.T, dial linktest.Dialer, simulated bool) {
		s, least := newTestStoreBy(t, Options{Time: now.Load}, dial), int64(in2100)
		if simulated {
			least = 1e17 // no count comes near it
		}
		rapid.Check(t, func(rt *rapid.T) {
			c := &drawnCase{T: t, Store: s, simulated: simulated, done: make(signal, store.MaxTakes)}
			c.nowNS = rapid.OneOf(rapid.Int64Range(least, math.MaxInt64-2*exactNS), rapid.Int64Range(in2100, in2100+5e9)).Draw(rt, "now")
			if s.options.Time = now.Load; simulated && rapid.Bool().Draw(rt, "by the engine's clock") {
				c.nowNS -= c.nowNS % 1000 // TIME is in µs
				s.options.Time = nil      // to views, the time is as before
			}
			now.Store(c.nowNS)
			s.do(t, "DEL", "k")
			s.views.Forget([]string{"k"}) // and when it was read: here time goes back
			property(rt, c)
		})
	})
}

// near draws a number near one of these.
func near(t *rapid.T, edges ...int64) int64 {
	return rapid.SampledFrom(edges).Draw(t, "near") + rapid.SampledFrom([]int64{0, 0, 0, 1, -1, 2, -2}).Draw(t, "beside")
}

// drawnRate draws a bucket with which a script can compute: at times just so.
func drawnRate(t *rapid.T, eachSecond, mostCapacity int64) (capacity, count, period int64) {
	period = rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, exactNS/1_000_000_000)).Draw(t, "period")
	count = rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, min(period*eachSecond, math.MaxInt32))).Draw(t, "count")
	most := min((exactNS-1)/((period*1e9-1)/count+1), mostCapacity)
	capacity = rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, most), rapid.Just(most)).Draw(t, "capacity")
	return min(capacity, most), count, period
}

// drawTAT draws what the key holds; 0: nothing.
func (c *drawnCase) drawTAT(t *rapid.T, toleranceNS, intervalNS int64) {
	debt := int64(0)
	switch rapid.IntRange(0, 9).Draw(t, "holds") {
	case 0:
	case 1:
		c.tat = uint64(rapid.OneOf(rapid.Int64Range(1, 9), rapid.Int64Range(1, c.nowNS), rapid.Int64Range(c.nowNS-9, c.nowNS)).
			Draw(t, "over"))
	case 2:
		c.tat = uint64(c.nowNS) + rapid.SampledFrom([]uint64{exactNS, 1 << 53, 1<<53 + 1, math.MaxInt64, 1 << 63}).Draw(t, "much")
	case 3:
		debt = near(t, exactNS-3)
	case 4:
		debt = rapid.Int64Range(1, max(toleranceNS, 1)).Draw(t, "debt")
	case 5:
		debt = intervalNS*rapid.Int64Range(1, 3).Draw(t, "calls") + 1
	default:
		debt = max(near(t, toleranceNS, toleranceNS-intervalNS, toleranceNS+intervalNS, toleranceNS-2*intervalNS, intervalNS), 1)
	}
	if debt > 0 {
		c.tat = uint64(c.nowNS + debt)
	}
	c.by = c.tat < uint64(c.nowNS)+exactNS
}

// decide lets calls be decided, and waits for the answers.
func (c *drawnCase) decide(t *rapid.T, by func(d *deciding), calls ...*call) {
	changes := c.stats.Changes.Load()
	for _, o := range calls {
		o.Common, o.store, o.pending = queue.Common{Key: "k", Deadline: time.Now().Add(patient)}, c.Store, newPending(0, c.done)
	}
	by(c.deciding(calls...))
	for range calls {
		<-c.done
	}
	if c.by != (c.stats.Changes.Load() == changes) {
		t.Fatalf("the script decides: %v", !c.by)
	}
}

// stores is what the key is to hold after a call of the model.
func (c *drawnCase) stores(tat uint64, head string) {
	c.tat, c.held, c.expires = tat, head+strconv.FormatUint(tat, 10), true
	if tat <= uint64(c.nowNS) {
		c.held = ""
	}
}

// holds compares what the key holds with the model.
func (c *drawnCase) holds(t *rapid.T, read ...string) {
	wantMs := "-1"
	switch {
	case c.held == "":
		wantMs = "-2"
	case c.expires:
		wantMs = expiryMs(c.tat)
	}
	got, _ := c.do(c.T, read...).ToString()
	ms, _ := c.do(c.T, "PEXPIRETIME", "k").AsInt64()
	if got != c.held || c.by && strconv.FormatInt(ms, 10) != wantMs {
		t.Fatalf("it holds %q until %d, want %q until %s", got, ms, c.held, wantMs)
	}
}

// drawThrottles gives the key a TAT, and draws calls of CL.THROTTLE for it.
func (c *drawnCase) drawThrottles(t *rapid.T) (calls []*call) {
	var buckets []cell.Bucket
	for range rapid.IntRange(1, 2).Draw(t, "buckets") {
		capacity, count, period := drawnRate(t, 1e9, exactNS)
		buckets = append(buckets, bucketOf(c.T, capacity-1, count, period))
	}
	if c.drawTAT(t, buckets[0].ToleranceNS(), buckets[0].IntervalNS()); c.tat != 0 {
		c.held = strconv.FormatUint(c.tat, 10)
		c.do(c.T, "SET", "k", c.held)
	}
	quantity := int64(1)
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		b := rapid.SampledFrom(buckets).Draw(t, "bucket")
		most, left := (exactNS-1)/b.IntervalNS(), int64(0) // that a script computes with, and that the debt is
		if c.by && c.tat > uint64(c.nowNS) {
			left = int64(c.tat-uint64(c.nowNS)) / b.IntervalNS()
		}
		quantity = rapid.OneOf(rapid.Just(-quantity), rapid.Int64Range(-2, 3), rapid.Int64Range(-most, most),
			rapid.Custom(func(t *rapid.T) int64 {
				return near(t, b.Capacity(), b.Capacity()-left, b.Capacity()-left, -left, -left, most, -most)
			})).Draw(t, "quantity")
		r := store.Request{Key: []byte("k"), Bucket: b, Quantity: min(max(quantity, -most), most)}
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			one := r
			calls = append(calls, &call{throttle: &one})
		}
	}
	return calls
}

// throttled compares the answers to calls, and what the key holds.
func (c *drawnCase) throttled(t *rapid.T, calls []*call) {
	for i, o := range calls {
		r := o.throttle
		next, want, err := r.Bucket.Throttle(c.tat, c.nowNS, r.Quantity)
		if err != nil || r.Err != nil || r.Decision != want {
			t.Fatalf("call %d of %d, %d of %+v: %+v, %v, want %+v, %v", i, len(calls), r.Quantity, r.Bucket, r.Decision, r.Err, want, err)
		}
		if !want.Limited && r.Quantity != 0 {
			c.stores(next, "")
		}
	}
	c.holds(t, "GET", "k")
}

func TestDrawnThrottles(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		calls := c.drawThrottles(t)
		c.decide(t, (*deciding).byScript, calls...)
		c.throttled(t, calls)
	})
}

// An expectation is stored as it is, or decides as the script.
func TestDrawnExpectations(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		calls := c.drawThrottles(t)
		expected := c.tat + uint64(rapid.IntRange(0, 1).Draw(t, "other"))
		next := uint64(near(t, c.nowNS+3, c.nowNS+1e9, c.nowNS+exactNS))
		met := c.held == strconv.FormatUint(expected, 10)
		c.by = c.by || met
		c.decide(t, func(d *deciding) {
			args := []string{strconv.FormatUint(expected, 10), strconv.FormatUint(next, 10), expiryMs(next), d.timeArg()}
			d.run(expectScript, args, func(answer rueidis.RedisMessage, err error) {
				if is := err == nil && answer.IsInt64(); is != met {
					t.Errorf("the expectation is met: %v, %v", is, err)
				}
				if met {
					d.group.End(nil)
				} else {
					d.ran(answer, err)
				}
			})
		}, calls...)
		if met {
			c.stores(next, "")
			c.holds(t, "GET", "k")
		} else {
			c.throttled(t, calls)
		}
	})
}

// What was stored for a new key is taken back, and what others have taken behind it is not.
func TestDrawnTakenBack(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		calls := c.drawThrottles(t)
		now := uint64(c.nowNS)
		ours := now + uint64(near(t, 3, 1e9, exactNS-2))
		if c.by && c.tat > 1e9+9 && rapid.Bool().Draw(t, "near the TAT") {
			ours = uint64(near(t, int64(c.tat), c.nowNS, (int64(c.tat)+c.nowNS)/2))
		}
		behind := c.tat - ours
		switch {
		case c.held == "" || len(c.held) != len(strconv.FormatUint(ours, 10)):
		case behind == 0:
			c.tat, c.held = 0, ""
		case ours > now && c.tat > ours && behind >= exactNS: // further behind than a script computes, or anybody takes
			t.Skip()
		case ours > now && c.tat > ours:
			c.tat, c.held = now+behind, strconv.FormatUint(now+behind, 10)
		}
		c.by = c.tat < now+exactNS
		c.decide(t, func(d *deciding) { d.again(ours) }, calls...)
		c.throttled(t, calls)
	})
}

// drawTakes draws runs of equal calls of CL.TAKE, each of a cost that is drawn.
func (c *drawnCase) drawTakes(t *rapid.T, limit *cell.Limit, drawCost func() int64) (calls []*call, field string) {
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		cost := max(drawCost(), 1)
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			one := store.Call{Key: []byte("k"), Limit: limit}
			field = c.fieldOf(&one)
			calls = append(calls, &call{field: field, take: &store.TakeRequest{Calls: []store.Call{one},
				TakeOptions: store.TakeOptions{Cost: cost}}})
		}
	}
	return calls, field
}

func TestDrawnTakes(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		burst, count, period := drawnRate(t, 1e7, math.MaxInt32)
		limit := linktest.Literal(c.T, fmt.Sprintf("%d/%ds,burst=%d", count, period, max(burst, 1)))
		b := limit.Bucket()
		head := headOf(limit)
		if c.drawTAT(t, b.ToleranceNS(), b.IntervalNS()); c.tat != 0 {
			c.held = head + strconv.FormatUint(c.tat, 10)
		}
		calls, field := c.drawTakes(t, limit, func() int64 {
			return rapid.OneOf(rapid.Int64Range(1, 3), rapid.Custom(func(t *rapid.T) int64 {
				return near(t, burst, burst/2, burst+1, cell.MaxCost-2)
			})).Draw(t, "cost")
		})
		if c.held != "" {
			c.do(c.T, "HSET", "k", field, c.held)
		}
		c.decide(t, (*deciding).byScript, calls...)
		for i, o := range calls {
			got, st := o.take.Calls[0].Decision, cell.State{A: c.tat}
			want := limit.Decide(&st, c.nowNS, o.take.Cost, cell.Take)
			if o.take.Err != nil || got != want || o.take.Taken.Limited != want.Limited {
				t.Fatalf("call %d of %d, %d of %s: %+v, %v, want %+v", i, len(calls), o.take.Cost, limit, got, o.take.Err, want)
			}
			if !want.Limited {
				c.stores(st.A, head)
			}
		}
		c.holds(t, "HGET", "k", field)
	})
}

func TestDrawnWindows(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		count := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, math.MaxUint32), rapid.Just[int64](math.MaxUint32)).
			Draw(t, "count")
		period := fmt.Sprint(rapid.OneOf(rapid.Int64Range(1, 100_000), rapid.Int64Range(1, 31e9)).Draw(t, "period"), "ms,algo=window")
		if c.options.Time != nil {
			period = rapid.SampledFrom([]string{period, period + ",align=clock", "hour", "week", "month", "day,tz=+08:00"}).Draw(t, "as")
		}
		limit := linktest.Literal(c.T, fmt.Sprint(count, "/", period))
		var st cell.State
		force := func(atNS int64) {
			cost := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Custom(func(t *rapid.T) int64 {
				return max(1, near(t, count, count/2, cell.MaxCost-2))
			})).Draw(t, "used")
			limit.Fit(&st, atNS, cost)
			limit.Decide(&st, atNS, cost, cell.Force)
		}
		if rapid.Bool().Draw(t, "holds") {
			force(c.nowNS - rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(limit.PeriodNS-9, limit.PeriodNS+9),
				rapid.Int64Range(0, 2*limit.PeriodNS)).Draw(t, "age"))
		}
		c.by = st.A <= math.MaxInt64 // Lua's numbers end there
		if !limit.Aligned() && st.A > uint64(c.nowNS) && rapid.IntRange(0, 9).Draw(t, "booked") == 0 {
			text := fmt.Sprintf("%suntil=%d used=1 before=%d", headOf(limit), st.A+uint64(limit.PeriodNS), count)
			_, st, _ = cell.ParseState(text)
			c.by = false
		}
		calls, field := c.drawTakes(t, limit, func() int64 {
			return rapid.OneOf(rapid.Int64Range(1, 3), rapid.Custom(func(t *rapid.T) int64 {
				return near(t, count, count/2, count-int64(min(st.B, uint64(count))), exactNS-3)
			})).Draw(t, "cost")
		})
		if st.A > 0 {
			c.held = string(limit.AppendState(nil, &st))
			c.do(c.T, "HSET", "k", field, c.held)
		}
		c.decide(t, (*deciding).byScript, calls...)
		for i, o := range calls {
			limit.Fit(&st, c.nowNS, o.take.Cost)
			got, want := o.take.Calls[0].Decision, limit.Decide(&st, c.nowNS, o.take.Cost, cell.Take)
			if o.take.Err != nil || got != want || o.take.Taken.Limited != want.Limited {
				t.Fatalf("call %d of %d, %d of %s: %+v, %v, want %+v", i, len(calls), o.take.Cost, limit, got, o.take.Err, want)
			}
			if !want.Limited {
				c.tat, c.held, c.expires = st.A, string(limit.AppendState(nil, &st)), true
			}
		}
		if c.by {
			c.holds(t, "HGET", "k", field)
		}
	})
}
