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

// held is what a key holds for callers.
func (s *Store) held(t failer, key string) (v store.Value, there bool) {
	t.Helper()
	w := make(signal, 1)
	x := s.Open([][]byte{[]byte(key)}, store.OpenOptions{}, w)
	defer x.Close()
	if <-w; x.Err() != nil {
		t.Fatalf("%v", x.Err())
	}
	return x.Keys().Get([]byte(key), store.Access{NowNS: x.TimeNS()})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// An engine counts by a script, and by a view where that cannot, as the code of package store says: at the ends of a count, of Lua's
// numbers and of 64 bits, and for TATs.
func TestCountsOnAnEngine(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	hour := time.Now().Add(time.Hour).UnixNano()
	near := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(cell.LargestCount-3, cell.LargestCount+3),
		rapid.Int64Range(-cell.LargestCount-3, -cell.LargestCount+3), rapid.Int64Range(1<<53-3, 1<<53+3), rapid.Int64Range(hour-3, hour+3),
		rapid.Int64Range(math.MaxInt64-3, math.MaxInt64), rapid.Int64Range(math.MinInt64, math.MinInt64+3), rapid.Int64())
	in2100 := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		linktest.Do(outer, s.link, "DEL", "p:k")
		if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
			linktest.Do(outer, s.link, "SET", "p:k", fmt.Sprint(near.Draw(t, "n")))
			if rapid.Bool().Draw(t, "expires") {
				linktest.Do(outer, s.link, "PEXPIREAT", "p:k", fmt.Sprint(in2100/1e6))
			}
		}
		reqs := make([]store.CountRequest, rapid.IntRange(1, 3).Draw(t, "requests"))
		for i := range reqs {
			c := store.Count{Counter: cell.Unbounded(near.Draw(t, "by"))}
			if rapid.IntRange(0, 3).Draw(t, "INCRBY") == 0 {
				c.Strict = true
			} else {
				a, b := near.Draw(t, "bound"), near.Draw(t, "bound")
				c.Lower, c.Upper, c.Saturate = min(a, b), max(a, b), rapid.Bool().Draw(t, "saturate")
				c.Only = rapid.SampledFrom([]store.Presence{store.Always, store.Always, store.IfAbsent, store.IfPresent}).Draw(t, "only")
				c.Expire = rapid.SampledFrom([]store.Expire{
					store.KeepExpiry, store.NeverExpire, store.ExpireIn, store.ExpireAt,
				}).Draw(t, "expire")
				switch c.Expire {
				case store.ExpireIn:
					c.TimeNS = rapid.SampledFrom([]int64{1e15, 9e18}).Draw(t, "in")
				case store.ExpireAt:
					c.TimeNS = in2100 + 5e6
				}
				c.IfNone = c.Expire >= store.ExpireIn && rapid.Bool().Draw(t, "ENX")
			}
			reqs[i] = store.CountRequest{Key: []byte("k"), Count: c}
		}
		model := slices.Clone(reqs)
		want, there := s.held(t, "k")
		for i := range model {
			if next, put := model[i].Decide(want, there, time.Now().UnixNano()); put {
				want, there = next, true
			}
		}
		for i, r := range s.countNow(reqs...) {
			w := model[i]
			if r.Value != w.Value || r.Added != w.Added || r.Met != w.Met || fmt.Sprint(r.Err) != fmt.Sprint(w.Err) {
				t.Fatalf("%+v: %d, %d, %v, %v, want %d, %d, %v, %v", r.Count, r.Value, r.Added, r.Met, r.Err,
					w.Value, w.Added, w.Met, w.Err)
			}
		}
		got, is := s.held(t, "k")
		later := got.Expiry() - want.Expiry() // with PX, by the engine's time; a TAT is not in whole ms
		if want.Expiry() > 0 && got.Expiry() > 0 && later >= -2e6 && later < int64(time.Minute) {
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
