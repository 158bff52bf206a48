package remote

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/script"
	"celld/resp/script/scripttest"
	"celld/store"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

func (s *Store) countNow(reqs ...store.CountRequest) []store.CountRequest {
	w := make(signal, 1)
	if !s.CountBatch(reqs, store.Access{NowNS: time.Now().UnixNano()}, w) {
		<-w
	}
	return reqs
}

// added is what INCRBY, or INCREX as Redis documents it, makes of n in integers without end; "": it stays.
func added(n int64, c *store.Count) (next int64, changes bool, err string) {
	wide := func(n int64) *big.Int { return big.NewInt(n) }
	sum := new(big.Int).Add(wide(n), wide(c.By))
	under, over := sum.Cmp(wide(c.Lower)) < 0, sum.Cmp(wide(c.Upper)) > 0
	switch {
	case !under && !over:
		return sum.Int64(), true, ""
	case c.Strict:
		return n, false, "ERR increment or decrement would overflow"
	case !c.Saturate:
		return n, false, ""
	}
	to := c.Lower
	if over {
		to = c.Upper
	}
	if !new(big.Int).Sub(wide(to), wide(n)).IsInt64() {
		return n, false, "ERR applied increment would overflow"
	}
	return to, true, ""
}

// An engine without INCREX counts by a script as one that has it, at the ends of 64 bits and of Lua's numbers, too.
func TestCountsOnAnEngine(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	near := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(1e9-3, 1e9+3), rapid.Int64Range(-1e9-3, -1e9+3),
		rapid.Int64Range(1<<53-3, 1<<53+3), rapid.Int64Range(math.MaxInt64-3, math.MaxInt64),
		rapid.Int64Range(math.MinInt64, math.MinInt64+3), rapid.Int64())
	in2100 := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		do := func(args ...string) string {
			m := linktest.Do(outer, s.link, args...)
			text, _ := m.ToString()
			n, err := m.AsInt64()
			if text == "" && err == nil {
				text = fmt.Sprint(n)
			}
			return text
		}
		n, there, expires := near.Draw(t, "n"), rapid.IntRange(0, 3).Draw(t, "there") > 0, rapid.Bool().Draw(t, "expires")
		do("DEL", "p:k")
		if there {
			do("SET", "p:k", fmt.Sprint(n))
			if expires {
				do("PEXPIREAT", "p:k", fmt.Sprint(in2100))
			}
		} else {
			n, expires = 0, false
		}
		c := store.Count{Counter: cell.Unbounded(near.Draw(t, "by")), Only: rapid.SampledFrom(
			[]store.Presence{store.Always, store.Always, store.IfAbsent, store.IfPresent}).Draw(t, "only")}
		if rapid.IntRange(0, 3).Draw(t, "INCRBY") == 0 {
			c.Strict, c.Only = true, store.Always
		} else {
			a, b := near.Draw(t, "bound"), near.Draw(t, "bound")
			c.Lower, c.Upper, c.Saturate = min(a, b), max(a, b), rapid.Bool().Draw(t, "saturate")
			c.Expire = rapid.SampledFrom([]store.Expire{
				store.KeepExpiry, store.NeverExpire, store.ExpireIn, store.ExpireAt,
			}).Draw(t, "expire")
			c.TimeNS, c.IfNone = 1e15, c.Expire >= store.ExpireIn && rapid.Bool().Draw(t, "ENX")
			if c.Expire == store.ExpireAt {
				c.TimeNS = (in2100 + 5) * 1e6
			}
		}
		next, changes, wantErr := added(n, &c)
		met := c.Only == store.Always || (c.Only == store.IfPresent) == there
		if !met {
			next, changes, wantErr = n, false, ""
		}
		r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]
		switch {
		case wantErr != "":
			if r.Err == nil || r.Err.Error() != wantErr {
				t.Fatalf("%+v: %v, want %s", c, r.Err, wantErr)
			}
		case r.Err != nil || r.Value != next || !c.Strict && r.Added != next-n || r.Met != met:
			t.Fatalf("%+v of %d: %d, %d, %v, %v, want %d", c, n, r.Value, r.Added, r.Met, r.Err, next)
		}
		want := ""
		if there || changes {
			want = fmt.Sprint(next)
		}
		if got := do("GET", "p:k"); got != want {
			t.Fatalf("%+v of %d: the engine holds %q, want %q", c, n, got, want)
		}
		if want == "" {
			return
		}
		least, most := int64(-1), int64(-1)
		if expires {
			least, most = in2100, in2100
		}
		if changes && c.Expire != store.KeepExpiry && !(c.IfNone && expires) {
			switch c.Expire {
			case store.NeverExpire:
				least, most = -1, -1
			case store.ExpireIn:
				most = time.Now().UnixMilli() + 1e9
				least = most - 60_000
			case store.ExpireAt:
				least, most = in2100+5, in2100+5
			}
		}
		if at, _ := linktest.Do(outer, s.link, "PEXPIRETIME", "p:k").AsInt64(); at < least || at > most {
			t.Fatalf("%+v of %d: it expires at %d, want %d to %d", c, n, at, least, most)
		}
	})
}

// What is no integer, or no string, is an error and stays.
func TestCountsOfOtherThings(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	for _, c := range []store.Count{{Counter: cell.Counter{By: 1, Upper: 9, Strict: true}}, {Counter: cell.Counter{By: 1, Upper: 9}}} {
		for _, value := range []string{"", "x", "1.5", "05", "-0", "+1", " 1", "9223372036854775808", "-9223372036854775809",
			"18446744073709551615", "1e3", strings.Repeat("1", 40)} {
			linktest.Do(t, s.link, "SET", "k", value)
			r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]
			if after, _ := linktest.Do(t, s.link, "GET", "k").ToString(); after != value || r.Err == nil ||
				r.Err.Error() != "ERR value is not an integer or out of range" {
				t.Errorf("%q: %v, and %q", value, r.Err, after)
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
		reqs[i].Strict = i%2 == 0
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

// engineOf answers what a script calls.
type engineOf struct {
	scripttest.Host
	answer string
}

func (h engineOf) Call([][]byte) []byte { return []byte(h.answer) }

// Whether an engine has INCREX, by what it says of bounds that cross. Redis, Valkey and celld say the first.
func TestKnownIncrEx(t *testing.T) {
	e := script.NewEngine()
	known, err := e.Load([]byte(knownText))
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		"-ERR LBOUND can't be greater than UBOUND\r\n":                                ":1\r\n",
		"-ERR Unknown Redis command called from script\r\n":                           ":0\r\n",
		"-ERR The user executing the script can't run this command or subcommand\r\n": ":0\r\n",
		"-READONLY You can't write against a read only replica.\r\n":                  ":0\r\n",
		"-OOM command not allowed when used memory > 'maxmemory'.\r\n":                ":0\r\n",
		"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n":      ":0\r\n",
	} {
		e.Run(known, engineOf{answer: answer}, [][]byte{[]byte("k")}, nil)
		if got := string(e.AppendReply(nil, false)); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

// An engine that has INCREX is asked by it, in the words of its documentation. One that has lost it, as another took its place, is asked
// by the script from then on.
func TestIncrExOfTheEngine(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.Answers(":1\r\n") // it has INCREX
		s.hasIncrEx(&counting{Common: queue.Common{Key: "p:k", Deadline: time.Now().Add(time.Second)}})
		synctest.Wait()
		e.Answers("*2\r\n:7\r\n:-2\r\n")
		c := store.Count{Counter: cell.Counter{By: -2, Lower: math.MinInt64, Upper: 100, Saturate: true},
			Expire: store.ExpireIn, TimeNS: 60e9, IfNone: true}
		if r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]; r.Value != 7 || r.Added != -2 || !r.Met || r.Err != nil {
			t.Errorf("%+v", r)
		}
		c.Expire, c.TimeNS, c.IfNone, c.Saturate = store.ExpireAt, 5e6, false, false
		s.countNow(store.CountRequest{Key: []byte("k"), Count: c})
		c.Expire = store.NeverExpire
		s.countNow(store.CountRequest{Key: []byte("k"), Count: c})
		s.countNow(store.CountRequest{Key: []byte("k"), Count: store.Count{Counter: c.Counter, Only: store.IfAbsent}})
		want := []string{
			"INCREX p:k BYINT -2 LBOUND -9223372036854775808 UBOUND 100 SATURATE PX 60000 ENX",
			"INCREX p:k BYINT -2 LBOUND -9223372036854775808 UBOUND 100 PXAT 5",
			"INCREX p:k BYINT -2 LBOUND -9223372036854775808 UBOUND 100 PERSIST",
			"EVALSHA " + incrExScript.Digest + " 1 p:k -2 -9223372036854775808 100  NX  0 ",
		}
		if got := e.Commands(); strings.Join(got[max(0, len(got)-4):], "\n") != strings.Join(want, "\n") {
			t.Errorf("%q", got)
		}
		e.Does(map[string]string{"INCREX": "-ERR unknown command 'INCREX', with args beginning with: 'p:k' \r\n",
			"EVALSHA": "*2\r\n$1\r\n3\r\n$1\r\n1\r\n"})
		for range 2 {
			if r := s.countNow(store.CountRequest{Key: []byte("k"), Count: c})[0]; r.Value != 3 || r.Added != 1 || r.Err != nil {
				t.Errorf("without INCREX: %+v", r)
			}
		}
		if n := e.Asks("INCREX p:k"); n != 4 {
			t.Errorf("INCREX was sent %d times, want 4", n)
		}
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

// INCRBY, INCREX and the script go by themselves.
func TestCountsThatGoTogether(t *testing.T) {
	kinds := []*counting{{request: &store.CountRequest{Count: store.Count{Counter: cell.Counter{Strict: true}}}},
		{request: &store.CountRequest{}}, {request: &store.CountRequest{Count: store.Count{Only: store.IfAbsent}}}}
	for i, a := range kinds {
		for j, b := range kinds {
			if a.GoesWith(b) != (i == j) {
				t.Errorf("%d goes with %d: %v", i, j, i != j)
			}
		}
	}
	if kinds[0].GoesWith(&call{}) {
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
