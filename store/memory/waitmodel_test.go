package memory_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// lineModel is what a line of one gcra limit does: who waits, when each passes, and what is owed. All is in closed form: a call of
// cost c passes when the debt is at most (burst - c) intervals.
type lineModel struct {
	interval, burst int64
	tat             int64 // the debt's end
	sinceNS         int64 // nobody who waits can have passed before
	line            []*modelWaiter
}

type modelWaiter struct {
	*waiter
	cost                  int64
	arrivedNS, deadlineNS int64
	goneNS                int64 // when it is answered; 0: not yet
	granted               bool
}

// momentNS is when a cost passes, from an instant on.
func (m *lineModel) momentNS(fromNS, cost int64) int64 {
	return max(fromNS, m.tat-(m.burst-cost)*m.interval)
}

func (m *lineModel) take(atNS, cost int64) { m.tat = max(m.tat, atNS) + cost*m.interval }

// run lets time pass: the first passes or gives up, whichever comes first, and others give up.
func (m *lineModel) run(nowNS int64) {
	for {
		next, who, passes := nowNS+1, -1, false
		for i, w := range m.line {
			at, ok := w.deadlineNS, false
			if i == 0 {
				if moment := m.momentNS(max(w.arrivedNS, m.sinceNS), w.cost); moment <= at {
					at, ok = moment, true
				}
			}
			if at < next {
				next, who, passes = at, i, ok
			}
		}
		if who < 0 {
			return
		}
		w := m.line[who]
		w.goneNS, w.granted = next, passes
		if passes {
			m.take(next, w.cost)
		}
		m.remove(who, next)
	}
}

func (m *lineModel) remove(i int, nowNS int64) {
	m.line = slices.Delete(m.line, i, i+1)
	if i == 0 {
		m.sinceNS = nowNS
	}
}

// lastNS is when a call of a cost passes behind all others.
func (m *lineModel) lastNS(nowNS, cost int64) int64 {
	after := *m
	for i, w := range m.line {
		from := nowNS
		if i == 0 {
			from = max(w.arrivedNS, m.sinceNS)
		}
		after.take(after.momentNS(from, w.cost), w.cost)
	}
	return after.momentNS(nowNS, cost)
}

// Whatever happens to a line of a bucket, each of those who wait passes at the moment that the closed form says, or gives up at
// its deadline; and when all is over nobody waits.
func TestALineAgainstItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			s := waitingStore()
			const ms = int64(time.Millisecond)
			m := &lineModel{interval: 10 * ms, burst: rapid.Int64Range(1, 5).Draw(rt, "burst")}
			l := memtest.MustParse(rt, fmt.Sprintf("100/1s,burst=%d", m.burst))
			if ok, err := s.SetPolicy("p", []cell.Limit{l}, policy.Options{}); !ok || err != nil {
				rt.Fatal(ok, err)
			}
			p := s.PolicyNamed("p").Limits[0]
			one := func() store.Call { return store.Call{Key: []byte("k"), Limit: &l, Policy: p} }
			var all []*modelWaiter
			check := func() {
				synctest.Wait()
				m.run(clock())
				for i, w := range all {
					switch {
					case w.waits() != (w.goneNS == 0):
						rt.Fatalf("%d waits: %v, in the model since %d: %v", i, w.waits(), w.arrivedNS, w.goneNS)
					case w.waits():
					case w.granted != w.waiter.granted() || w.doneNS.Load() != w.goneNS || w.woken.Load() > 1:
						rt.Fatalf("%d: granted %v at %d, in the model %v at %d", i, w.waiter.granted(), w.doneNS.Load(),
							w.granted, w.goneNS)
					}
				}
			}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				m.run(clock())
				now := clock()
				switch what := rapid.IntRange(0, 12).Draw(rt, "what"); what {
				case 0, 1, 2, 3, 4:
					cost := rapid.Int64Range(1, m.burst+1).Draw(rt, "cost")
					// No two give up at one instant: which is first then is up to the scheduler.
					most := rapid.Int64Range(0, 30).Draw(rt, "most")*5*ms + int64(len(all))
					w := &modelWaiter{cost: cost, arrivedNS: now, deadlineNS: now + most}
					switch moment := m.lastNS(now, cost); {
					case cost > m.burst || moment > w.deadlineNS:
						w.goneNS = now
					case moment == now && len(m.line) == 0:
						w.goneNS, w.granted = now, true
						m.take(now, cost)
					default:
						if len(m.line) == 0 {
							m.sinceNS = now
						}
						m.line = append(m.line, w)
					}
					w.waiter = await(s, time.Duration(most), cost, one())
					all = append(all, w)
				case 5: // a plain call
					cost := rapid.Int64Range(1, m.burst).Draw(rt, "cost")
					want := uint64(m.lastNS(now, cost) - now)
					got := plainly(s, cost, one())
					passes := len(m.line) == 0 && want == 0
					if got.granted() != passes || !passes && got.taken().RetryAfterNS != max(want, 1) {
						rt.Fatalf("a plain call: %+v, want %d", got.taken(), want)
					} else if passes {
						m.take(now, cost)
					}
				case 6: // somebody leaves
					if n := len(m.line); n > 0 {
						i := rapid.IntRange(0, n-1).Draw(rt, "who")
						w := m.line[i]
						if !w.leave(errUnblocked) {
							rt.Fatal("it does not wait")
						}
						w.goneNS = now
						m.remove(i, now)
					}
				case 7: // a refund
					n := rapid.Int64Range(1, 3).Draw(rt, "n")
					if _, err := s.Give([]byte("k"), &l, p, n, memtest.At(now)); err != nil {
						rt.Fatal(err)
					}
					m.tat, m.sinceNS = max(min(m.tat, now), m.tat-n*m.interval), now
				case 8:
					cost := rapid.Int64Range(1, 3).Draw(rt, "forced")
					if _, err := s.Take([]store.Call{one()}, store.TakeOptions{Cost: cost, Mode: cell.Force}, memtest.At(now)); err != nil {
						rt.Fatal(err)
					}
					m.take(now, cost)
					m.sinceNS = now
				case 9:
					if rapid.Bool().Draw(rt, "flush") {
						s.Flush()
					} else {
						s.Delete([]byte("k"), now)
					}
					m.tat, m.sinceNS = 0, now
				case 10: // nothing that concerns it
					if _, err := s.SetPolicy("q", []cell.Limit{l}, policy.Options{}); err != nil {
						rt.Fatal(err)
					}
					plainly(s, 1, memtest.Call(t, "k", "1/1s"), memtest.Call(t, "other", "5/1s"))
					m.sinceNS = max(m.sinceNS, now)
				default:
					celldtest.Pass(time.Duration(rapid.Int64Range(0, 60).Draw(rt, "ms") * ms))
				}
				check()
			}
			celldtest.Pass(10 * time.Second)
			check()
			if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
				rt.Fatalf("%d callers wait for %d keys", callers, keys)
			}
			if !plainly(s, m.burst, one()).granted() {
				rt.Fatal("something is held")
			}
		})
	})
}

// Whatever the limits, and however many a call has: those who wait for one state only pass in the order in which they came, each of
// those who wait is answered by its deadline, and when all is over nobody waits and nothing is held.
func TestLinesOfAllKinds(t *testing.T) {
	limits := []string{
		"20/1s,burst=1", "20/1s,burst=5", "3/100ms,algo=window", "10/second", "10/1s,algo=slide", "10/1s,algo=slide,buckets=4",
		"10/1s,algo=log", "30/1s,burst=4,block=50ms", "1/1s,burst=1,shadow", "@p",
		"2/700ms,algo=conc", "1/3s,algo=conc", "20/1s,warmup=1s",
	}
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			s := waitingStore()
			set := func(o policy.Options) {
				text := rapid.SampledFrom(limits[:8]).Draw(rt, "policy")
				if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(rt, text)}, o); err != nil {
					rt.Fatal(err)
				}
			}
			set(policy.Options{})
			key := rapid.SampledFrom([]string{"a", "b", "c"})
			draw := func() store.Call {
				text, name := rapid.SampledFrom(limits).Draw(rt, "limit"), key.Draw(rt, "key")
				if text != "@p" {
					return memtest.Call(rt, name, text)
				}
				p := s.PolicyNamed("p")
				if p == nil {
					set(policy.Options{})
					p = s.PolicyNamed("p")
				}
				return store.CallOf([]byte(name), p.Limits[0])
			}
			type asked struct {
				*waiter
				state      string // of one limit; "": of several, or of a policy
				deadlineNS int64
			}
			var all []asked
			for range rapid.IntRange(1, 80).Draw(rt, "steps") {
				switch what := rapid.IntRange(0, 16).Draw(rt, "what"); what {
				case 15, 16:
					if len(all) > 0 {
						w := rapid.SampledFrom(all).Draw(rt, "whose lease")
						key := w.reqs[0].Calls[0].Key
						if id := w.lease(); id == 0 {
							break
						} else if n := rapid.Int64Range(0, 3).Draw(rt, "settled"); n == 3 {
							s.Renew(key, id, rapid.Int64Range(1, 2000).Draw(rt, "renewed for")*1e6, memtest.At(clock()))
						} else {
							s.Settle(key, id, n, memtest.At(clock()))
						}
					}
				case 0, 1, 2, 3, 4, 5, 6:
					var calls []store.Call
					for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "calls") {
						calls = append(calls, draw())
					}
					most := time.Duration(rapid.Int64Range(0, 3000).Draw(rt, "most")) * time.Millisecond
					a := asked{deadlineNS: clock() + int64(most)}
					if len(calls) == 1 && calls[0].Policy == nil {
						a.state = string(calls[0].Key) + string(calls[0].Limit.AppendText(nil))
					}
					mode := rapid.SampledFrom([]store.WaitMode{store.Wait, store.Wait, store.Wait, store.Reserve}).Draw(rt, "mode")
					terms := store.Terms{Mode: mode, MaxNS: int64(most)}
					conc := slices.ContainsFunc(calls, func(c store.Call) bool { return c.Limit.Algo == cell.Conc })
					if !conc && rapid.IntRange(0, 3).Draw(rt, "lease") == 0 {
						terms.LeaseNS = rapid.Int64Range(1, 2000).Draw(rt, "leased for") * 1e6
					}
					if conc || terms.LeaseNS > 0 {
						terms.Name = rapid.SampledFrom([]string{"", "", "", "x", "y"}).Draw(rt, "name")
					}
					if terms.Name != "" { // a repeat is answered when the first is
						a.state = ""
					}
					a.waiter = takeLease(s, terms, rapid.Int64Range(1, 4).Draw(rt, "cost"), calls...)
					if mode == store.Reserve {
						if a.waits() {
							rt.Fatal("a reservation waits")
						}
						a.state = ""
					}
					all = append(all, a)
				case 7:
					c := draw()
					if _, err := s.Give(c.Key, c.Limit, c.Policy, 2, memtest.At(clock())); err != nil {
						rt.Fatal(err)
					}
				case 8:
					s.Delete([]byte(key.Draw(rt, "deleted")), clock())
				case 9:
					s.Rename([]byte(key.Draw(rt, "from")), []byte(key.Draw(rt, "to")), memtest.At(clock()))
				case 10:
					if len(all) > 0 {
						w := rapid.SampledFrom(all).Draw(rt, "leaves")
						w.leave(rapid.SampledFrom([]error{store.ErrRefused, errUnblocked}).Draw(rt, "why"))
					}
				case 11:
					if rapid.Bool().Draw(rt, "delete") {
						s.DeletePolicy("p")
					} else {
						set(policy.Options{Reset: rapid.Bool().Draw(rt, "reset")})
					}
				case 12:
					s.SetWall(clock()+rapid.Int64Range(-2000, 2000).Draw(rt, "ahead")*1e6, clock())
				default:
					celldtest.Pass(time.Duration(rapid.Int64Range(0, 300).Draw(rt, "ms")) * time.Millisecond)
					for s.Sweep(clock()) {
					}
				}
				synctest.Wait()
				last := make(map[string]int64)
				for i, w := range all {
					if w.waits() && clock() > w.deadlineNS {
						rt.Fatalf("%d still waits", i)
					}
					if w.woken.Load() > 1 {
						rt.Fatalf("%d was woken %d times", i, w.woken.Load())
					}
					if w.state == "" || !w.granted() {
						continue
					}
					if done := w.doneNS.Load(); done < last[w.state] {
						rt.Fatalf("%d is overtaken", i)
					} else {
						last[w.state] = done
					}
				}
			}
			celldtest.Pass(10 * time.Second)
			if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
				rt.Fatalf("%d callers wait for %d keys", callers, keys)
			}
			for s.Sweep(clock()) {
			}
			if n := s.Len(clock()); n != 0 {
				rt.Fatalf("%d keys are held", n)
			}
		})
	})
}
