package shard_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// drawCount draws what INCR, or mostly INCREX, may ask for.
func drawCount(t *rapid.T, nowNS int64) store.Count {
	near := func(name string) int64 {
		return rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(1e15-3, 1e15+3), rapid.Int64Range(math.MaxInt64-3, math.MaxInt64),
			rapid.Int64Range(math.MinInt64, math.MinInt64+3)).Draw(t, name)
	}
	c := store.Count{Counter: cell.Unbounded(near("by"))}
	if rapid.Bool().Draw(t, "INCR") {
		c.Strict = true
		return c
	}
	if a, b := near("bound"), near("bound"); rapid.Bool().Draw(t, "bounded") {
		c.Lower, c.Upper = min(a, b), max(a, b)
	}
	c.Saturate = rapid.Bool().Draw(t, "saturate")
	c.Only = rapid.SampledFrom([]store.Presence{store.Always, store.Always, store.IfAbsent, store.IfPresent}).Draw(t, "only")
	c.Expire = rapid.SampledFrom([]store.Expire{store.KeepExpiry, store.NeverExpire, store.ExpireIn, store.ExpireAt}).Draw(t, "expire")
	switch c.Expire {
	case store.ExpireIn:
		c.TimeNS = rapid.SampledFrom([]int64{1e6, 2e6, second, math.MaxInt64 / 1_000_000 * 1_000_000}).Draw(t, "in")
	case store.ExpireAt:
		c.TimeNS = nowNS + rapid.SampledFrom([]int64{-1e6, 0, 1e6, second}).Draw(t, "at")
	}
	c.IfNone = c.Expire >= store.ExpireIn && rapid.Bool().Draw(t, "ENX")
	return c
}

// A store that decides without the lock where it can does the same as Update with CountRequest.Decide, whatever else happens to the keys.
func TestCountsAreWhatTheyDecide(t *testing.T) {
	bucket := memtest.MustLimit(t, 5, 1, 60)
	rapid.Check(t, func(t *rapid.T) {
		s, model, now := memory.New(memory.Options{Shards: 1}), memory.New(memory.Options{Shards: 1}), t0
		for range 60 {
			if rapid.IntRange(0, 3).Draw(t, "time passes") == 0 {
				now += rapid.SampledFrom([]int64{1, 1e6, second, 60 * second}).Draw(t, "ns")
			}
			key, a := []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")), memtest.At(now)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				n := rapid.SampledFrom([]int64{0, 7, 1e15, now + second, math.MaxInt64}).Draw(t, "value")
				st := store.Integer(n, now, store.NoExpiry)
				memtest.MustPut(t, s, string(key), st, now)
				memtest.MustPut(t, model, string(key), st, now)
			case 1:
				s.Delete(key, now)
				model.Delete(key, now)
			case 2:
				got, err := s.Throttle(key, bucket, 1, a)
				if want, wantErr := model.Throttle(key, bucket, 1, a); got != want || err != wantErr {
					t.Fatalf("CL.THROTTLE: %+v, want %+v", got, want)
				}
			case 3:
				memtest.Sweep(s, now)
			default:
				var got [2]store.CountRequest
				for i := range got {
					got[i] = store.CountRequest{Key: key, Count: drawCount(t, now)}
				}
				want, changed, modelChanged := got, s.Stats(now).Changes, model.Stats(now).Changes
				s.CountBatch(got[:], a, nil)
				for i := range want {
					r := &want[i]
					_ = model.Update(key, a, func(is store.Value, there bool) (store.Value, bool) { return r.Decide(is, there, now) })
					r.Hash = got[i].Hash
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%+v\nwant %+v", got, want)
				}
				if n, want := s.Stats(now).Changes-changed, model.Stats(now).Changes-modelChanged; n != want {
					t.Fatalf("%+v: %d changes, want %d", got, n, want)
				}
			}
			for _, key := range []string{"a", "b", "c"} {
				got, ok := s.Get([]byte(key), memtest.Untouched(now))
				if want, wantOK := model.Get([]byte(key), memtest.Untouched(now)); got != want || ok != wantOK {
					t.Fatalf("%s holds %+v, %v, want %+v, %v", key, got, ok, want, wantOK)
				}
			}
			memtest.MustAudit(t, s)
		}
	})
}

// A full store refuses a new count, and adds to one that is there.
func TestCountsWhenFull(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 1, NoEviction: true})
	one := func(key string) (n int64, err error) {
		r := []store.CountRequest{{Key: []byte(key), Count: store.Count{Counter: cell.Unbounded(1)}}}
		s.CountBatch(r, memtest.At(t0), nil)
		return r[0].Value, r[0].Err
	}
	for want := range int64(2) {
		if n, err := one("a"); n != want+1 || err != nil {
			t.Errorf("%d, %v, want %d", n, err, want+1)
		}
		if n, err := one("b"); n != 0 || !errors.Is(err, store.ErrFull) {
			t.Errorf("a new key: %d, %v", n, err)
		}
	}
	memtest.ExpectKeys(t, s, t0, "a")
}

// Counts are counts by the wall clock: where that was set, they stay what they are, and a TAT moves.
func TestCountsStayWhenTheClockIsSet(t *testing.T) {
	s := memory.New(memory.Options{})
	const us = t0 / 1000 // as scripts store a time in µs
	memtest.MustPut(t, s, "us", store.Value{Count: us, ExpiryNS: store.NoExpiry}, t0)
	memtest.MustPut(t, s, "tat", memtest.Live(t0, 10*second), t0)
	for _, ahead := range []int64{3600 * second, -3600 * second} {
		s.SetWall(t0+ahead, t0)
		r := []store.CountRequest{{Key: []byte("us"), Count: store.Count{Counter: cell.Unbounded(0)}}}
		if s.CountBatch(r, memtest.At(t0), nil); r[0].Value != us {
			t.Errorf("ahead by %d: %d, want %d", ahead, r[0].Value, us)
		}
		if st, _ := s.Get([]byte("us"), memtest.At(t0)); st.Count != us {
			t.Errorf("ahead by %d: %+v", ahead, st)
		}
	}
}

// Connections that add to one key at once admit exactly the bound, and none loses its addition, while keys come and end beside it.
func TestCountersAtOnce(t *testing.T) {
	const callers, calls, bound = 8, 3000, 1000
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	admitted, done := make(chan int64, callers), make(chan bool)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				memtest.MustPut(t, s, fmt.Sprint("other", i%20), store.Value{Count: 1, ExpiryNS: t0 + int64(i)*1000 + 1}, t0+int64(i)*1000)
				s.Drain(func(memory.Change) {})
			}
		}
	}()
	for caller := range callers {
		go func() {
			n := int64(0)
			for i := range calls {
				a := store.Access{NowNS: t0 + int64(i)*2000, Lane: uint8(caller)}
				up := cell.Counter{By: 1, Lower: math.MinInt64, Upper: bound}
				r := []store.CountRequest{
					{Key: []byte("k"), Count: store.Count{Counter: up, Expire: store.ExpireIn, TimeNS: 3600 * second, IfNone: true}},
					{Key: []byte("all"), Count: store.Count{Counter: cell.Unbounded(1)}},
				}
				s.CountBatch(r, a, nil)
				n += r[0].Added
			}
			admitted <- n
		}()
	}
	sum := int64(0)
	for range callers {
		sum += <-admitted
	}
	close(done)
	if sum != bound {
		t.Errorf("%d admitted, want %d", sum, bound)
	}
	for key, want := range map[string]int64{"k": bound, "all": callers * calls} {
		if st, ok := s.Get([]byte(key), memtest.At(t0+second)); !ok || st.Count != want {
			t.Errorf("%s holds %+v, %v, want %d", key, st, ok, want)
		}
	}
}
