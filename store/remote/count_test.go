package remote

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
)

func (s *Store) countNow(reqs ...store.CountRequest) []store.CountRequest {
	w := make(signal, 1)
	if !s.CountBatch(reqs, store.Access{NowNS: time.Now().UnixNano()}, w) {
		<-w
	}
	return reqs
}

// holdsCount is what a key holds for callers.
func (c *drawnCase) holdsCount(key string) (v store.Value, there bool) {
	w := make(signal, 1)
	x := c.Open([][]byte{[]byte(key)}, store.OpenOptions{}, w)
	defer x.Close()
	if <-w; x.Err() != nil {
		c.Fatal(x.Err())
	}
	return x.Keys().Get([]byte(key), store.Access{NowNS: x.TimeNS()})
}

// An engine counts by a script, and by a view where that cannot, as the code of package store says: at the ends of a count, of Lua's
// numbers and of 64 bits, for TATs, and for expiries.
func TestDrawnCounts(t *testing.T) {
	onDrawn(t, func(t *rapid.T, c *drawnCase) {
		const ms = 1_000_000
		number := rapid.Custom(func(t *rapid.T) int64 {
			if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
				return rapid.Int64().Draw(t, "n")
			}
			return near(t, 0, cell.LargestCount, -cell.LargestCount, 1<<53, c.nowNS+3600e9, math.MaxInt64-2, math.MinInt64+2)
		})
		there := rapid.IntRange(0, 3).Draw(t, "there") > 0
		if there {
			c.do(c.T, "SET", "k", fmt.Sprint(number.Draw(t, "n")))
		}
		if there && rapid.Bool().Draw(t, "expires") {
			c.do(c.T, "PEXPIREAT", "k", fmt.Sprint(c.nowNS/ms+rapid.Int64Range(2, 1e9).Draw(t, "ms")))
		}
		reqs := make([]store.CountRequest, rapid.IntRange(1, 3).Draw(t, "requests"))
		for i := range reqs {
			n := store.Count{Counter: cell.Unbounded(number.Draw(t, "by"))}
			if n.Strict = rapid.IntRange(0, 3).Draw(t, "INCRBY") == 0; !n.Strict {
				a, b := number.Draw(t, "bound"), number.Draw(t, "bound")
				n.Lower, n.Upper, n.Saturate = min(a, b), max(a, b), rapid.Bool().Draw(t, "saturate")
				n.Only = store.Presence(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "only"))
				n.Expire = store.Expire(rapid.IntRange(0, 3).Draw(t, "expire"))
				switch in := rapid.SampledFrom([]int64{ms, 1e15, longestPlain, longestPlain + ms, 9e18}).Draw(t, "in"); n.Expire {
				case store.ExpireIn:
					n.TimeNS = in
					if in == longestPlain && c.nowNS > math.MaxInt64-in { // the script's clock is not so far ahead
						n.TimeNS = ms
					}
				case store.ExpireAt:
					n.TimeNS = (c.nowNS/ms + 5) * ms
					if c.simulated && rapid.Bool().Draw(t, "over") {
						n.TimeNS -= 5 * ms
					}
				}
				n.IfNone = n.Expire >= store.ExpireIn && rapid.Bool().Draw(t, "ENX")
			}
			reqs[i] = store.CountRequest{Key: []byte("k"), Count: n}
		}
		model := slices.Clone(reqs)
		want, there := c.holdsCount("k")
		for i := range model {
			if next, put := model[i].Decide(want, there, c.nowNS); put {
				want, there = next, next.Expiry() == store.NoExpiry || next.Expiry() > c.nowNS
			}
			if !there {
				want = store.Value{}
			}
		}
		for i, r := range c.countNow(reqs...) {
			w := model[i]
			if r.Value != w.Value || r.Added != w.Added || r.Met != w.Met || fmt.Sprint(r.Err) != fmt.Sprint(w.Err) {
				t.Fatalf("%+v: %d, %d, %v, %v, want %d, %d, %v, %v", r.Count, r.Value, r.Added, r.Met, r.Err,
					w.Value, w.Added, w.Met, w.Err)
			}
		}
		got, is := c.holdsCount("k")
		if later := got.Expiry() - want.Expiry(); !want.IsCount() && later >= -2*ms && later <= 2*ms { // a TAT is not in whole ms
			got.ExpiryNS = want.ExpiryNS
		}
		if got != want || is != there {
			t.Fatalf("%+v: it holds %+v, %v, want %+v, %v", reqs, got, is, want, there)
		}
	})
}

// What another program holds under a key is an error and stays. A TAT from 2^63 on is no integer of 64 bits.
func TestCountsOfOtherThings(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	for _, c := range []store.Count{{Counter: cell.Counter{By: 1, Upper: 9, Strict: true}}, {Counter: cell.Counter{By: 1, Upper: 9}}} {
		for _, value := range []string{"", "x", "1.5", "05", "-0", "+1", " 1", "9223372036854775808", "-9223372036854775809",
			"18446744073709551615", "1e3", "0x10", "nan", "inf", strings.Repeat("1", 40)} {
			linktest.Do(t, s.link, "SET", "k", value)
			want := store.ErrWrongType
			if len(value) > 18 && value[0] != '-' && len(value) < 40 {
				want = store.ErrNotInteger
			}
			r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]
			if after, _ := linktest.Do(t, s.link, "GET", "k").ToString(); after != value || r.Err != want {
				t.Errorf("%q: %v, want %v, and %q", value, r.Err, want, after)
			}
		}
		linktest.Do(t, s.link, "DEL", "k")
		linktest.Do(t, s.link, "RPUSH", "k", "x")
		if r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]; r.Err != store.ErrWrongType {
			t.Errorf("a list: %v", r.Err)
		}
		linktest.Do(t, s.link, "DEL", "k")
	}
}

// All requests of a batch are answered, those of one key in their order.
func TestABatchOfCounts(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	var reqs []store.CountRequest
	for i := range store.MaxTakes {
		reqs = append(reqs, store.CountRequest{Key: fmt.Append(nil, "k", i%3), Count: store.Count{Counter: cell.Counter{By: 1, Upper: 10}}})
		if i%2 == 0 {
			reqs[i].Counter = cell.Unbounded(1)
			reqs[i].Strict = true
		}
	}
	var held [3]int64
	for i, r := range s.countNow(reqs...) {
		n := &held[i%3]
		if r.Strict || *n < 10 {
			*n++
		}
		if r.Err != nil || r.Value != *n {
			t.Errorf("request %d: %d, %v, want %d", i, r.Value, r.Err, *n)
		}
	}
}

// Answers that are none are errors, and so is what the engine refuses.
func TestCountsThatFail(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		c := store.Count{Counter: cell.Unbounded(1)}
		e.Answers("*1\r\n:3\r\n")
		if r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]; r.Err == nil || r.Value != 0 {
			t.Errorf("an answer that is none: %+v", r)
		}
		e.Answers("-LOADING Redis is loading\r\n")
		if r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]; !errors.As(r.Err, new(*DownError)) {
			t.Errorf("while the engine loads: %v", r.Err)
		}
	})
}

// Those that may delete the key go by themselves.
func TestCountsThatGoTogether(t *testing.T) {
	plain := &counting{request: &store.CountRequest{}}
	in := &counting{request: &store.CountRequest{Count: store.Count{Expire: store.ExpireIn}}}
	at := &counting{request: &store.CountRequest{Count: store.Count{Expire: store.ExpireAt}}}
	if !plain.GoesWith(in) || !in.GoesWith(plain) || at.GoesWith(plain) || plain.GoesWith(at) || !at.GoesWith(at) {
		t.Error("they do not go together as they should")
	}
	if plain.GoesWith(&call{}) {
		t.Error("a count goes with a take")
	}
}

// What is known of a TAT is no longer known once somebody has added to it.
func TestCountsForgetTheTAT(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	s.tatCache.note("p:k", cachedTAT{tatNS: 7})
	if s.countNow(store.CountRequest{Key: []byte("k"), Count: store.Count{Counter: cell.Unbounded(1)}}); s.tatCache.tat("p:k") != 0 {
		t.Error("the TAT is still known")
	}
}
