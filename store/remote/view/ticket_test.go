package view

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
)

// BenchmarkContention changes one key all the time, by Stores with one goroutine each. The figures in ticket.go are its:
//
//	go test ./store/remote/view -run xxx -bench Contention -benchtime 2s
func BenchmarkContention(b *testing.B) {
	socket := linktest.StartRedis(b)
	for _, n := range []int{1, 2, 8, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { contend(b, socket, n) })
	}
}

func contend(b *testing.B, socket string, n int) {
	stores, took := make([]*Store, n), make([][]time.Duration, n)
	limit := linktest.Literal(b, "1000000/1s,algo=slide,buckets=4")
	key := fmt.Append(nil, "k", n)
	for i := range stores {
		stores[i] = newTestStore(b, socket, Options{})
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				r := store.TakeRequest{Calls: []store.Call{{Key: key, Limit: limit}}, TakeOptions: store.TakeOptions{Cost: 1}}
				start := time.Now()
				if s.takeNow(&r); r.Err != nil {
					b.Error(r.Err)
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	least, most, conflicts := b.N, 0, int64(0)
	for i := range took {
		least, most = min(least, len(took[i])), max(most, len(took[i]))
		conflicts += stores[i].counts.Conflicts.Load()
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(conflicts)/float64(b.N), "conflicts/op")
	b.ReportMetric(float64(all[len(all)-1].Microseconds()), "worst-µs")
	b.ReportMetric(float64(least), "least")
	b.ReportMetric(float64(most), "most")
}

// Nobody overtakes a view that has conflicted thrice.
func TestTickets(t *testing.T) {
	socket := linktest.StartRedis(t)
	one, other := newTestStore(t, socket, Options{}), newTestStore(t, socket, Options{})
	celldtest.Again(t, func(attempt string) string { // a ticket lasts 50 ms, which a busy machine may miss
		key := "k" + attempt
		w := make(signal, 1)
		v := one.Open([][]byte{[]byte(key)}, w)
		<-w
		for i := range conflictsBeforeTicket {
			other.on(t, func(v *View) { v.take(t, key, "100/1h,algo=window") }, key)
			v.take(t, key, "100/1h,algo=window")
			if v.Commit(w) {
				t.Fatal(v.Err)
			}
			if <-w; !v.Conflict() {
				t.Fatalf("no conflict %d: %v", i, v.Err)
			}
		}
		late := make(signal, 1)
		o := other.Open([][]byte{[]byte(key)}, late)
		<-late
		o.take(t, key, "100/1h,algo=window")
		o.Commit(late)
		v.take(t, key, "100/1h,algo=window")
		v.Commit(w)
		<-w
		first := !v.Conflict() && v.Err == nil
		if names, _ := one.do(t, "LRANGE", key+ticketsSuffix, "0", "-1").AsStrSlice(); first && slices.Contains(names, v.ticket.name) {
			t.Error("who has stored still holds the turn")
		}
		<-late
		waited := o.Conflict()
		o.Close()
		v.Close()
		if first && waited {
			return ""
		}
		return "the other was first"
	})
}

// A view that has a ticket and is gone holds up others for as long as the list lasts.
func TestTicketOfNobody(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	s.do(t, "RPUSH", "k"+ticketsSuffix, "gone")
	s.do(t, "PEXPIRE", "k"+ticketsSuffix, "50")
	r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "3/1m,algo=log")}},
		TakeOptions: store.TakeOptions{Cost: 1}}
	if s.takeNow(&r); r.Err != nil || r.Taken.Granted != 1 {
		t.Error(r.Err)
	}
	if n, _ := s.do(t, "EXISTS", "k"+ticketsSuffix).AsInt64(); n != 0 {
		t.Error("somebody still queues")
	}
}

// A view that cannot wait any longer leaves. On a busy machine what it sends then may be late.
func TestTicketThatIsGivenUp(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Timeout: 20 * time.Millisecond})
	celldtest.Again(t, func(string) string {
		s.do(t, "DEL", "k"+ticketsSuffix)
		s.do(t, "RPUSH", "k"+ticketsSuffix, "first")
		r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "3/1m,algo=log")}},
			TakeOptions: store.TakeOptions{Cost: 1}}
		if s.takeNow(&r); r.Err == nil {
			t.Fatal("it has overtaken")
		}
		for range 100 {
			if n, _ := s.do(t, "LLEN", "k"+ticketsSuffix).AsInt64(); n == 1 {
				return ""
			}
		}
		return "it never leaves"
	})
}

// A Store that is alone with a key does not read it before each change, and finds out when it is not.
func TestContentCache(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	take := func() store.TakeRequest {
		r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "3/1h,algo=window")}},
			TakeOptions: store.TakeOptions{Cost: 1}}
		s.takeNow(&r)
		return r
	}
	take()
	before := s.stats.Requests.Load()
	for i := range 2 {
		if r := take(); r.Err != nil || r.Taken.Granted != 1 {
			t.Fatalf("%d: %+v, %v", i, r.Taken, r.Err)
		}
	}
	if n := s.stats.Requests.Load() - before; n != 2 {
		t.Errorf("%d requests", n)
	}
	s.do(t, "DEL", "k")
	if r := take(); r.Err != nil || r.Taken.Limited {
		t.Error("a denial is guessed")
	}
	for range 3 {
		take()
	}
	s.do(t, "DEL", "k")
	if r := take(); r.Err != nil || r.Taken.Limited {
		t.Error("a denial after others is guessed")
	}
}

// What EXPIRE did since a change was stored is over with the next call that passes, and not with one that is denied, as in memory.
func TestCachedContentsKnowTheExpiry(t *testing.T) {
	s := testStores(t, 1)[0]
	hour, day := takeCall(t, "k", "2/1h"), takeCall(t, "k", "2/1d")
	s.plainly(t, 1, hour, day)
	for _, test := range []struct {
		cost    int64
		resumes bool
	}{{3, false}, {1, true}} {
		s.do(t, "PEXPIRE", "k", "5000")
		s.plainly(t, test.cost, hour)
		m := s.do(t, "PTTL", "k")
		if ms, _ := m.AsInt64(); ms > 5000 != test.resumes {
			t.Errorf("after a call of %d the limits end in %d ms", test.cost, ms)
		}
	}
}

// A key of the name that a list of tickets would have changes nothing for the key beside it.
func TestAKeyOfTheNameOfAList(t *testing.T) {
	socket := linktest.StartRedis(t)
	stores := []*Store{newTestStore(t, socket, Options{}), newTestStore(t, socket, Options{})}
	for _, queue := range []string{"k" + ticketsSuffix, "{k}" + ticketsSuffix} {
		stores[0].do(t, "SET", queue, "1")
	}
	for i := range 10 { // of two, each finds what it does not expect
		r := store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: linktest.Literal(t, "10/1h,algo=window")}},
			TakeOptions: store.TakeOptions{Cost: 1}}
		if stores[i%2].takeNow(&r); r.Err != nil || r.Calls[0].Decision.Remaining != int64(9-i) {
			t.Errorf("call %d: %+v, %v", i, r.Calls[0].Decision, r.Err)
		}
	}
}
