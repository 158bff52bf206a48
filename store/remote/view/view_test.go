package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// do runs a command on the engine, past the Store.
func (s *Store) do(t failer, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m, err := s.Link.Client().Do(context.Background(), s.Link.Client().B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", args, err)
	}
	return &m
}

func (s *Store) hash(t failer, key string) map[string]string {
	t.Helper()
	m := s.do(t, "HGETALL", key)
	fields, err := m.AsStrMap()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return fields
}

// take takes 1 of a limit, a policy's where the text begins with @.
func (v *View) take(t testing.TB, key, text string) store.Taken {
	t.Helper()
	c := store.Call{Key: []byte(key)}
	v.Table()
	if name, isPolicy := strings.CutPrefix(text, "@"); isPolicy {
		p := v.PolicyNamed(name)
		c.Limit, c.Policy = &p.Limits[0].Limit, p.Limits[0]
	} else {
		c.Limit = linktest.Literal(t, text)
	}
	taken, err := v.Table().Take([]store.Call{c}, store.TakeOptions{Cost: 1}, store.Access{NowNS: v.NowNS})
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func TestViewThatOnlyReadsAsksNothing(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	s.on(t, func(v *View) { v.take(t, "k", "3/1m,algo=log") }, "k")
	w := make(signal, 1)
	v := s.Open([][]byte{[]byte("k"), []byte("other")}, w)
	<-w
	if _, ok := v.Table().Get([]byte("k"), store.Access{NowNS: v.NowNS}); !ok {
		t.Error("nothing was stored")
	}
	if !v.Commit(w) || v.Err != nil || v.Conflict() {
		t.Error("it stores")
	}
	v.Close()
}

// A view reads anew after another's write between its reading and its storing, whatever kind of write it is.
func TestConflict(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	for name, test := range map[string]struct{ before, between []string }{
		"came":            {nil, []string{"SET", "k", "5"}},
		"came, of limits": {nil, []string{"HSET", "k", "a", "b"}},
		"went":            {[]string{"SET", "k", "5"}, []string{"DEL", "k"}},
		"another text":    {[]string{"SET", "k", "5"}, []string{"SET", "k", "6"}},
		"another type":    {[]string{"SET", "k", "5"}, []string{"EVAL", "redis.call('DEL', 'k') return redis.call('LPUSH', 'k', 5)", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, "DEL", "k", "other")
			if test.before != nil {
				s.do(t, test.before...)
			}
			tries := 0
			s.on(t, func(v *View) {
				if tries++; tries == 1 {
					s.do(t, test.between...)
				}
				v.take(t, "other", "3/1m,algo=log") // k counts, though only the other is written
			}, "k", "other")
			if tries != 2 || len(s.hash(t, "other")) != 1 {
				t.Errorf("%d tries, %v", tries, s.hash(t, "other"))
			}
		})
	}
	for _, between := range [][]string{{"HSET", "k", "log/1m", "limit=3/1m,algo=log calls=4102444800000000000:1"},
		{"HSET", "k", "more", ""}, {"DEL", "k"}, {"SET", "k", "1"}} {
		t.Run(fmt.Sprint(between), func(t *testing.T) {
			s.do(t, "DEL", "k", "other")
			s.on(t, func(v *View) { v.take(t, "k", "3/1m,algo=log") }, "k")
			tries := 0
			s.on(t, func(v *View) {
				if tries++; tries == 1 {
					s.do(t, "DEL", "k")
					s.do(t, between...)
				}
				v.take(t, "other", "3/1m,algo=log")
			}, "k", "other")
			if tries != 2 {
				t.Errorf("%d tries", tries)
			}
		})
	}
}

// What celld does not write can be deleted and have another expiry, and nothing else becomes of it.
func TestForeign(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	for _, put := range [][]string{
		{"SET", "p:k", "text"}, {"SET", "p:k", "05"}, {"SET", "p:k", strings.Repeat("9", 100)}, {"RPUSH", "p:k", "a"},
		{"HSET", "p:k", "a", "b"}, {"HSET", "p:k", "@p", "5"}, {"HSET", "p:k", "3/1m", "limit=3/1m tat="},
	} {
		t.Run(fmt.Sprint(put), func(t *testing.T) {
			if _, err := s.Policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "3/1m")}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			s.do(t, "DEL", "p:k")
			s.do(t, put...)
			before, _ := s.do(t, "DUMP", "p:k").ToString()
			w := make(signal, 1)
			for i, write := range []func(v *View){
				func(v *View) { v.Rename([]byte("k"), []byte("other"), store.Access{NowNS: v.NowNS}) },
				func(v *View) { _, _ = v.Copy([]byte("k"), []byte("other"), true, store.Access{NowNS: v.NowNS}) },
				func(v *View) {
					_ = v.Update([]byte("k"), store.Access{NowNS: v.NowNS}, func(store.Value, bool) (store.Value, bool) {
						return store.Value{Count: 7, ExpiryNS: store.NoExpiry}, true
					})
				},
			} {
				v := s.Open([][]byte{[]byte("k"), []byte("other")}, w)
				<-w
				if _, foreign := v.Foreign([]byte("k")); !foreign {
					t.Error("it is celld's")
				}
				if write(v); !v.Commit(w) || v.Err != store.ErrWrongType {
					t.Errorf("%d: %v", i, v.Err)
				}
				v.Close()
			}
			s.on(t, func(v *View) {
				_ = v.Update([]byte("k"), store.Access{NowNS: v.NowNS}, func(old store.Value, _ bool) (store.Value, bool) {
					old.ExpiryNS = in2100
					return old, true
				})
			}, "k")
			if after, _ := s.do(t, "DUMP", "p:k").ToString(); after != before {
				t.Error("it is another")
			}
			if ms, _ := s.do(t, "PEXPIRETIME", "p:k").AsInt64(); ms != in2100/1e6 {
				t.Errorf("it expires at %d", ms)
			}
			r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "3/1m,algo=log")}},
				TakeOptions: store.TakeOptions{Cost: 1}}
			s.takeNow(&r)
			if r.Err != store.ErrWrongType {
				t.Errorf("a Take: %v", r.Err)
			}
			s.on(t, func(v *View) { v.Delete([]byte("k"), v.NowNS) }, "k")
			if n, _ := s.do(t, "EXISTS", "p:k").AsInt64(); n != 0 {
				t.Error("it is still there")
			}
		})
	}
}

// A new epoch of a policy begins with nothing, also for those who have not heard of it, and what is of an unknown policy stays.
func TestEpochsOfStates(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	if _, err := s.Policies.SetPolicy("api", []cell.Limit{*linktest.Literal(t, "3/1h,algo=window")}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	p := s.Policies.PolicyNamed("api")
	state := "limit=9/2h,algo=window until=4102444800000000000 used=2"
	s.do(t, "HSET", "k", "@unknown 7", state, "@api 4", "limit=3/1h,algo=window until=4102444800000000000 used=2")
	s.epochs = map[uint32]uint64{p.Limits[0].ID: 5}
	s.on(t, func(v *View) {
		if _, ok := v.Table().Get([]byte("k"), store.Access{NowNS: v.NowNS}); ok {
			t.Error("the view shows what is of no policy")
		}
	}, "k")
	if len(s.hash(t, "k")) != 2 {
		t.Error("who only reads has written")
	}
	var reset uint64
	s.on(t, func(v *View) { reset = v.take(t, "k", "@api").ResetAfterNS }, "k")
	got := s.hash(t, "k")
	if reset == 0 || got["@api/window/1h 5"] == "" || got["@unknown 7"] != state || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if ms, _ := s.do(t, "PEXPIRETIME", "k").AsInt64(); ms != in2100/1e6+Linger.Milliseconds() {
		t.Errorf("the key ends at %d, before what is unknown", ms)
	}
	s.on(t, func(v *View) {
		l := store.CallOf([]byte("k"), p.Limits[0])
		o := store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}
		if _, err := v.Take([]store.Call{l}, o, store.Access{NowNS: v.NowNS}); err != nil {
			t.Fatal(err)
		}
	}, "k")
	if got := s.hash(t, "k"); got["@api/window/1h 5 leases"] == "" {
		t.Errorf("%v", got)
	}
	for i, epoch := range []uint64{9, 5} {
		s.epochs[p.Limits[0].ID] = epoch
		s.on(t, func(v *View) { v.take(t, "k", "@api") }, "k")
		if got := s.hash(t, "k"); !strings.Contains(got["@api/window/1h 9"], fmt.Sprint("used=", i+1)) || len(got) != 2 {
			t.Errorf("%v", got)
		}
	}
}

func TestCheckHashSlot(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	linktest.InCluster(s.Link)
	w := make(signal, 1)
	v := s.Open([][]byte{[]byte("a"), []byte("b")}, w)
	<-w
	if v.Err != link.ErrCrossSlot {
		t.Error(v.Err)
	}
	v.Close()
	limit := linktest.Literal(t, "3/1m,algo=log")
	r := store.TakeRequest{Calls: []store.Call{{Key: []byte("a"), Limit: limit}, {Key: []byte("b"), Limit: limit}},
		TakeOptions: store.TakeOptions{Cost: 1}}
	if s.takeNow(&r); r.Err != link.ErrCrossSlot {
		t.Error(r.Err)
	}
	r.Calls[0].Key, r.Calls[1].Key = []byte("{u}a"), []byte("{u}b")
	if s.takeNow(&r); r.Err != nil || r.Taken.Granted != 1 {
		t.Error(r.Err, r.Taken)
	}
}

// The engine remembers the highest ID, so another process gives higher ones, though its clock is behind and nothing is left of the leases.
func TestIDsGrowAcrossStores(t *testing.T) {
	socket := linktest.StartRedis(t)
	last := int64(0)
	stores := []*Store{newTestStore(t, socket, Options{}), newTestStore(t, socket, Options{})}
	for i := range 200 {
		s := stores[i%2]
		if i%20 == 0 { // it is ahead of the engine
			s.Policies.RaiseID(uint64(max(last, time.Now().UnixMicro()+150_000)))
		}
		r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "100/1m,algo=log")}},
			TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}}
		s.takeNow(&r)
		if r.Err != nil || r.Terms.Lease <= last {
			t.Fatalf("%d: %d after %d, %v", i, r.Terms.Lease, last, r.Err)
		}
		last = r.Terms.Lease
		s.on(t, func(v *View) { v.Delete([]byte("k"), v.NowNS) }, "k") // nothing is left that tells of it
	}
}

// A lease of several keys ends under all, also where a view was opened for the first only.
func TestLinkedLeases(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	limit := linktest.Literal(t, "3/1m,algo=conc")
	for name, end := range map[string]func(id int64){
		"by a view": func(id int64) {
			s.on(t, func(v *View) { v.Release([]byte("a"), id, store.Access{NowNS: v.NowNS}) }, "a")
		},
		"by a change": func(id int64) {
			if err := s.decide([]string{"a"}, func(v *View) { v.Release([]byte("a"), id, store.Access{NowNS: v.NowNS}) }); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := store.TakeRequest{Calls: []store.Call{{Key: []byte("a"), Limit: limit}, {Key: []byte("b"), Limit: limit}},
				TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{}}}
			if s.takeNow(&r); r.Err != nil || r.Terms.Lease == 0 {
				t.Fatal(r.Err)
			}
			if n, _ := s.do(t, "EXISTS", "p:a", "p:b").AsInt64(); n != 2 {
				t.Fatal(n)
			}
			end(r.Terms.Lease)
			for _, key := range []string{"p:a", "p:b"} {
				if left := s.hash(t, key); len(left) != 0 {
					t.Errorf("%s has %v", key, left)
				}
			}
		})
	}
}

func TestUndeclaredKey(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	w := make(signal, 1)
	v := s.Open([][]byte{[]byte("a")}, w)
	<-w
	v.take(t, "b", "3/1m")
	if !v.Commit(w) || !errors.Is(v.Err, ErrUndeclared) {
		t.Error(v.Err)
	}
	v.Close()
}

// An engine that is full refuses, as a table does.
func TestFull(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	s.do(t, "CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
	r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "3/1m,algo=log")}},
		TakeOptions: store.TakeOptions{Cost: 1}}
	if s.takeNow(&r); !errors.Is(r.Err, store.ErrFull) {
		t.Error(r.Err)
	}
}

// A handler may take longer than the engine: what it takes is not of the time for the engine's answers.
func TestAHandlersTimeIsItsOwn(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	w := make(signal, 1)
	v := s.Open([][]byte{[]byte("k")}, w)
	<-w
	v.take(t, "k", "5/1m")
	const took = time.Hour
	v.deadline, v.given = v.deadline.Add(-took), v.given.Add(-took)
	if !v.Commit(w) {
		<-w
	}
	if v.Err != nil || v.Conflict() {
		t.Fatal(v.Err, v.Conflict())
	}
	if left := time.Until(v.deadline); left <= 0 || left > s.Timeout {
		t.Errorf("%v are left", left)
	}
}
