package storetest

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/waiting"
)

// Waits is a store whose calls may wait.
type Waits interface {
	store.Limiter
	store.Leases
}

// waitStep is how much time RunWaits lets pass at once, so a store that must ask another process may be so late.
const waitStep = 5 * time.Millisecond

// RunWaits tests how stores keep those who wait. Each test runs in a bubble of synctest, in which newStore is called: its keys are k and o,
// and its time is that of the bubble. decide returns when all calls are decided, and all goroutines rest. The store is told of changes of
// policies by changed.
func RunWaits(t *testing.T, newStore func(t *testing.T) (s Waits, policies *policy.Set, changed, decide func())) {
	for _, test := range []struct {
		name string
		run  func(*queuer)
	}{
		{"order", waitOrder},
		{"coalesced calls", waitCoalesces},
		{"heirs", waitHeirs},
		{"leaves", waitLeaves},
		{"refusals", waitRefusals},
		{"deadlines", waitDeadlines},
		{"forecasts", waitForecasts},
		{"no more than may wait", waitMost},
		{"give-back", waitGiveBack},
		{"plans that change", waitPlans},
		{"pauses", waitPaused},
		{"costs of names", waitCosts},
		{"who waits for a state", waitForState},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &queuer{T: t}
				q.store, q.policies, q.changed, q.decide = newStore(t)
				test.run(q)
				q.pass(0)
				q.waiting(0, 0)
			})
		})
	}
}

// queuer asks a store whose calls may wait.
type queuer struct {
	*testing.T
	store           Waits
	policies        *policy.Set
	changed, decide func()
}

// inLine is a call with WAIT, and its answer.
type inLine struct {
	reqs         [1]store.TakeRequest
	began, ended time.Time
	answers      atomic.Int32
}

func (w *inLine) Wake() {
	w.ended = time.Now()
	w.answers.Add(1)
}

// woken is how often it was answered. Another goroutine may answer meanwhile.
func (w *inLine) woken() int { return int(w.answers.Load()) }

// terms are those of a call that waits for so long at most.
func (q *queuer) terms(longest time.Duration, name string) store.Terms {
	t := store.Terms{Mode: store.Wait, MaxNS: int64(longest), Name: name}
	if name != "" {
		t.LeaseNS = int64(time.Hour)
	}
	return t
}

// calls are those of a key by a literal, or by @ and a policy.
func (q *queuer) calls(key, limit string) (calls []store.Call) {
	q.Helper()
	if name, named := strings.CutPrefix(limit, "@"); named {
		for _, l := range q.policies.PolicyNamed(name).Limits {
			calls = append(calls, store.CallOf([]byte(key), l))
		}
		return calls
	}
	l, err := cell.ParseLimit(limit)
	if err != nil {
		q.Fatal(err)
	}
	return []store.Call{{Key: []byte(key), Limit: &l}}
}

func (q *queuer) ask(terms store.Terms, cost int64, key, limit string) *inLine {
	q.Helper()
	w := &inLine{began: time.Now()}
	w.reqs[0] = store.TakeRequest{Calls: q.calls(key, limit), TakeOptions: store.TakeOptions{Cost: cost, Terms: &terms}}
	if q.store.TakeBatch(w.reqs[:], store.Access{NowNS: w.began.UnixNano()}, w) {
		w.Wake()
	}
	q.decide()
	return w
}

// await asks for 1 of key k.
func (q *queuer) await(longest time.Duration, limit string) *inLine {
	q.Helper()
	return q.ask(q.terms(longest, ""), 1, "k", limit)
}

// spend takes 1 of key k at once.
func (q *queuer) spend(limit string) {
	q.Helper()
	q.granted("the first", q.await(0, limit), 0)
}

func (q *queuer) leave(w *inLine, why error) bool {
	left := q.store.Leave(&w.reqs[0], why)
	q.decide()
	return left
}

func (q *queuer) pass(d time.Duration) {
	for q.decide(); d > 0; d -= waitStep {
		time.Sleep(min(d, waitStep))
		q.decide()
	}
}

// granted checks that a call was granted, so long after it came.
func (q *queuer) granted(what string, w *inLine, after time.Duration) {
	q.Helper()
	late := w.ended.Sub(w.began) - after
	if w.woken() != 1 || w.reqs[0].Err != nil || w.reqs[0].Taken.Limited || late < 0 || late > waitStep {
		q.Errorf("%s, woken %d times after %v: %+v, %v; want it granted after %v", what, w.woken(), w.ended.Sub(w.began), w.reqs[0].Taken,
			w.reqs[0].Err, after)
	}
}

// denied checks that a call was denied, so long after it came, and when it is to come again; 0: whenever.
func (q *queuer) denied(what string, w *inLine, after, retry time.Duration) {
	q.Helper()
	if late := w.ended.Sub(w.began) - after; w.woken() != 1 || w.reqs[0].Err != nil || !w.reqs[0].Taken.Limited || late < 0 ||
		late > waitStep ||
		retry != 0 && w.reqs[0].Taken.RetryAfterNS != uint64(retry) {
		q.Errorf("%s, woken %d times after %v: %+v, %v; want it denied after %v, for %v", what, w.woken(), w.ended.Sub(w.began),
			w.reqs[0].Taken, w.reqs[0].Err, after, retry)
	}
}

func (q *queuer) waiting(callers, keys int64) {
	q.Helper()
	if c, k := q.store.Waiting(); c != callers || k != keys {
		q.Errorf("%d wait for %d keys; want %d for %d", c, k, callers, keys)
	}
}

// waitingFor checks how many wait for the state of a limit of key k.
func (q *queuer) waitingFor(callers int64, limit string) {
	q.Helper()
	if n := q.store.WaitingFor(&q.calls("k", limit)[0]); n != callers {
		q.Errorf("%d wait for %s; want %d", n, limit, callers)
	}
}

// perSecond passes once a second, and can be booked.
const perSecond = "1/1s,burst=1"

// waitOrder: first come, first served, each at its moment, whatever the algorithm.
func waitOrder(q *queuer) {
	for _, limit := range []string{perSecond, "1/1s,algo=window", "1/1s,algo=log"} {
		q.pass(time.Until(time.Now().Truncate(time.Second).Add(2 * time.Second)))
		q.spend(limit)
		var all []*inLine
		for range 4 {
			all = append(all, q.await(time.Minute, limit))
		}
		q.waiting(4, 1)
		q.pass(2500 * time.Millisecond)
		q.waiting(2, 1)
		if all[2].woken()+all[3].woken() > 0 {
			q.Errorf("%s: one is answered before its moment", limit)
		}
		q.pass(2500 * time.Millisecond)
		for i, w := range all {
			q.granted(limit, w, time.Duration(i+1)*time.Second)
		}
		q.waiting(0, 0)
	}
}

// waitCoalesces: a repeat under the name of a lease is answered with the call that waits, and takes nothing. Another call under that name
// waits by itself.
func waitCoalesces(q *queuer) {
	q.spend(perSecond)
	first := q.ask(q.terms(time.Minute, "job"), 1, "k", perSecond)
	repeat, other := q.ask(q.terms(time.Minute, "job"), 1, "k", perSecond), q.ask(q.terms(time.Minute, "other"), 1, "k", perSecond)
	q.waiting(3, 1)
	q.pass(3 * time.Second)
	q.granted("the first", first, time.Second)
	q.granted("its repeat", repeat, time.Second)
	q.granted("another", other, 2*time.Second)
	one, same, another := first.reqs[0].Terms.Lease, repeat.reqs[0].Terms.Lease, other.reqs[0].Terms.Lease
	if one == 0 || same != one || another == one || another == 0 {
		q.Errorf("leases %d, %d and %d", one, same, another)
	}
}

// waitHeirs: when the first goes, a repeat takes its place before those who came later.
func waitHeirs(q *queuer) {
	q.spend(perSecond)
	first := q.ask(q.terms(time.Minute, "job"), 1, "k", perSecond)
	later := q.await(time.Minute, perSecond)
	heir, leaves := q.ask(q.terms(time.Minute, "job"), 1, "k", perSecond), q.ask(q.terms(time.Minute, "job"), 1, "k", perSecond)
	for _, w := range []*inLine{leaves, first} {
		if !q.leave(w, nil) || q.leave(w, nil) {
			q.Error("it does not leave once")
		}
	}
	q.waiting(2, 1)
	q.pass(3 * time.Second)
	q.granted("the heir", heir, time.Second)
	q.granted("who came later", later, 2*time.Second)
	if first.woken()+leaves.woken() > 0 {
		q.Error("who has gone is answered")
	}
}

// waitLeaves: those behind one who leaves move up, and the error of who ends a wait is its answer.
func waitLeaves(q *queuer) {
	q.spend(perSecond)
	var all []*inLine
	for range 4 {
		all = append(all, q.await(time.Minute, perSecond))
	}
	why := errors.New("why")
	if !q.leave(all[0], nil) || !q.leave(all[2], why) || q.leave(all[2], why) {
		q.Error("they do not leave once")
	}
	if all[0].woken() != 0 || all[2].woken() != 1 || all[2].reqs[0].Err != why {
		q.Errorf("woken %d and %d times: %v", all[0].woken(), all[2].woken(), all[2].reqs[0].Err)
	}
	q.pass(3 * time.Second)
	q.granted("the second", all[1], time.Second)
	q.granted("the last", all[3], 2*time.Second)
	if q.leave(all[1], nil) {
		q.Error("one that was answered leaves")
	}
}

// waitRefusals: a refused call is answered as one that does not wait, and the others are served as before.
func waitRefusals(q *queuer) {
	q.spend(perSecond)
	first, second, third := q.await(time.Minute, perSecond), q.await(time.Minute, perSecond), q.await(time.Minute, perSecond)
	q.pass(500 * time.Millisecond)
	if !q.leave(second, store.ErrRefused) {
		q.Error("it does not wait")
	}
	q.denied("the second", second, 500*time.Millisecond, 0)
	q.waiting(2, 1)
	q.pass(time.Second)
	q.granted("the first", first, time.Second)
	if !q.leave(third, store.ErrRefused) {
		q.Error("the last does not wait")
	}
	q.denied("the last", third, 1500*time.Millisecond, 500*time.Millisecond)
}

// waitDeadlines: a wait of unknown length ends at its deadline.
func waitDeadlines(q *queuer) {
	const one = "1/1h,algo=conc"
	q.spend(one)
	long, short := q.await(2*time.Second, one), q.await(time.Second, one)
	q.pass(3 * time.Second)
	q.denied("the second", short, time.Second, time.Hour-time.Second)
	q.denied("the first", long, 2*time.Second, time.Hour-2*time.Second)
}

// waitForecasts: a call whose wait is known to be too long, to the ns, is denied at once, and told how long it would be.
func waitForecasts(q *queuer) {
	q.spend(perSecond)
	for i := range 3 {
		most := time.Duration(i+1) * time.Second
		q.denied("too long by 1 ns", q.await(most-1, perSecond), 0, most)
		if w := q.await(most, perSecond); w.woken() != 0 {
			q.Errorf("%d: it could wait: %+v", i, w.reqs[0].Taken)
		}
	}
	q.denied("the capacity is 1", q.ask(q.terms(time.Hour, ""), 2, "o", perSecond), 0, -1)
	q.pass(3 * time.Second)
}

// waitMost: one more than may wait gets an error.
func waitMost(q *queuer) {
	q.store.SetMaxWaiters(1)
	q.spend(perSecond)
	first, second := q.await(time.Minute, perSecond), q.await(time.Minute, perSecond)
	if second.woken() != 1 || second.reqs[0].Err != store.ErrTooManyWaiters {
		q.Errorf("one more than may wait: %v", second.reqs[0].Err)
	}
	q.leave(first, nil)
	if third := q.await(time.Minute, perSecond); third.woken() != 0 || !q.leave(third, nil) {
		q.Errorf("in the place of one that has gone: %v", third.reqs[0].Err)
	}
	q.store.SetMaxWaiters(0)
	for range 3 {
		defer q.leave(q.await(time.Minute, perSecond), nil)
	}
	q.waiting(3, 1)
}

// waitGiveBack: calls whose clients have gone take nothing, whether their moment is near or far, or has passed. What has flowed back by
// itself since then does not flow back again.
func waitGiveBack(q *queuer) {
	for _, limit := range []string{perSecond, "1/1s,algo=window", "1/1s,algo=slide", "1/1s,algo=log", "@p"} {
		if limit == "@p" {
			q.plan(perSecond)
		}
		q.pass(time.Until(time.Now().Truncate(time.Second).Add(4 * time.Second)))
		for _, late := range []time.Duration{0, 400 * time.Millisecond, 2 * time.Second} {
			q.pass(4 * time.Second)
			q.spend(limit)
			gone := q.await(time.Minute, limit)
			for began := time.Now(); gone.woken() == 0 && time.Since(began) < 4*time.Second; {
				q.pass(waitStep)
			}
			q.pass(late)
			if late == 2*time.Second {
				q.spend(limit)
			}
			waiting.GiveBack(&gone.reqs[0], true, q.store, store.Access{NowNS: time.Now().UnixNano()})
			q.decide()
			next := q.await(0, limit)
			if late < time.Second && limit != "1/1s,algo=slide" { // where part of the call before counts
				q.granted(limit, next, 0)
			} else if late >= time.Second {
				q.denied(limit, next, 0, 0)
			}
		}
	}
	for _, before := range []time.Duration{time.Second, 10 * time.Millisecond} {
		q.pass(2 * time.Second)
		q.spend(perSecond)
		gone := q.await(time.Minute, perSecond)
		q.pass(time.Second - before)
		if !q.leave(gone, nil) {
			q.Error("it does not wait")
		}
		q.waiting(0, 0)
		next := q.await(time.Minute, perSecond)
		q.pass(2 * time.Second)
		q.granted("the next", next, before)
	}
}

// plan sets policy p.
func (q *queuer) plan(limits string) {
	q.Helper()
	parsed, err := policy.ParseLimits(limits)
	if err == nil {
		_, err = q.policies.SetPolicy("p", parsed, policy.Options{})
	}
	if err != nil {
		q.Fatal(err)
	}
	q.changed()
	q.decide()
}

// waitPlans: those who wait for a policy go by the limits that it has by then, however many.
func waitPlans(q *queuer) {
	q.plan(perSecond)
	q.spend("@p")
	first, second := q.await(time.Minute, "@p"), q.ask(q.terms(time.Minute, "job"), 1, "k", "@p")
	repeat := q.ask(q.terms(time.Minute, "job"), 1, "k", "@p")
	q.plan("9/1h " + perSecond)
	q.waiting(3, 1)
	q.pass(2500 * time.Millisecond)
	q.granted("the first", first, time.Second)
	q.granted("the second", second, 2*time.Second)
	q.granted("its repeat", repeat, 2*time.Second)
	for i, w := range []*inLine{first, second, repeat} {
		if calls := w.reqs[0].Calls; len(calls) != 2 || calls[0].Decision.Remaining != int64(8-min(i, 1)) || string(calls[0].Key) != "k" {
			q.Errorf("%d has %+v", i, calls)
		}
	}

	q.plan("9/1h 1/1m,burst=1")
	q.spend("@p")
	stays, goes := q.await(time.Hour, "@p"), q.await(time.Hour, "@p")
	q.plan("2/1m,burst=1,shadow 1/1s,burst=1 9/1h")
	q.pass(0)
	q.granted("one whose limit denies no longer", stays, 0)
	q.pass(1500 * time.Millisecond)
	q.granted("one that waits for another now", goes, time.Second)
	if calls := goes.reqs[0].Calls; len(calls) != 3 || calls[2].Decision.Remaining != 4 {
		q.Errorf("it has %+v", calls)
	}

	q.plan("1/2h")
	q.spend("@p")
	w := q.await(3*time.Hour, "@p")
	q.plan("5/1h,algo=window")
	q.granted("one whose limit has left", w, 0)
	q.spend("@p")
	if calls := q.await(0, "@p").reqs[0].Calls; calls[0].Decision.Remaining != 2 {
		q.Errorf("%+v", calls)
	}

	q.plan("9/1h,algo=window")
	limits, _ := policy.ParseLimits("1/1h,algo=window")
	if _, err := q.policies.SetPolicy("p", limits, policy.Options{UntilNS: 1}); err != nil {
		q.Fatal(err)
	}
	w = q.await(3*time.Hour, "@p")
	q.policies.EndPolicies(1)
	q.changed()
	q.pass(0)
	q.granted("one whose temporary policy has ended", w, 0)

	q.plan("1/1d")
	q.spend("@p")
	w = q.await(48*time.Hour, "@p")
	q.policies.DeletePolicy("p")
	q.changed()
	q.pass(0)
	if w.woken() != 1 || w.reqs[0].Err != policy.ErrNoPolicy {
		q.Errorf("one whose policy has gone: %+v, %v", w.reqs[0].Taken, w.reqs[0].Err)
	}
}

// rule puts a rule for key k, which lasts so long; 0: for ever.
func (q *queuer) rule(verdict string, lasts time.Duration) policy.Rule {
	r := policy.Rule{Pattern: "k"}
	if r.SetVerdict(verdict); lasts > 0 {
		r.UntilNS = time.Now().Add(lasts).UnixNano()
	}
	if _, err := q.policies.PutRule(r, time.Now().UnixNano()); err != nil {
		q.Fatal(err)
	}
	q.changed()
	q.pass(0)
	return r
}

func (q *queuer) unrule(r policy.Rule) {
	q.policies.DeleteRule(r, time.Now().UnixNano())
	q.changed()
	q.pass(0)
}

// waitPaused: while a rule pauses a key, those who wait go on waiting, others may join, and whoever does not wait is denied. When it ends,
// they pass in their order.
func waitPaused(q *queuer) {
	for _, limit := range []string{perSecond, "1/1s,algo=window", "1/1s,algo=log", "1/1s,algo=conc"} {
		q.pass(time.Until(time.Now().Truncate(time.Second).Add(2 * time.Second)))
		q.spend(limit)
		first := q.await(time.Minute, limit)
		q.rule("PAUSE", 30*time.Second)
		second := q.await(time.Minute, limit)
		if limit != "1/1s,algo=conc" { // on an engine, nobody knows when leases are released
			q.denied("one whose time does not allow it", q.await(29*time.Second, limit), 0, 0)
		}
		q.denied("one that may wait no time", q.await(0, limit), 0, 0)
		for _, mode := range []cell.Mode{cell.Take, cell.Peek, cell.Force} {
			r := [1]store.TakeRequest{{Calls: q.calls("k", limit), TakeOptions: store.TakeOptions{Cost: 1, Mode: mode}}}
			if taken := q.takes(r[:]).Taken; !taken.Limited || taken.RetryAfterNS != 30e9 {
				q.Errorf("one that does not wait, in mode %v: %+v", mode, taken)
			}
		}
		reserve := q.terms(time.Minute, "")
		reserve.Mode = store.Reserve
		if limit == perSecond {
			q.denied("a reservation", q.ask(reserve, 1, "k", limit), 0, 30*time.Second)
		}
		q.granted("another key", q.ask(q.terms(0, ""), 1, "o", limit), 0)
		q.waiting(2, 1)
		q.pass(29900 * time.Millisecond)
		q.waiting(2, 1)
		q.pass(2 * time.Second)
		q.granted("the first", first, 30*time.Second)
		q.granted("the second", second, 31*time.Second)
	}
	q.pass(2 * time.Second)

	pause := q.rule("PAUSE", 0) // until it is deleted
	late, w := q.await(10*time.Second, perSecond), q.await(time.Hour, perSecond)
	q.denied("one that does not wait", q.await(0, perSecond), 0, 0)
	q.pass(12 * time.Second)
	q.denied("one whose time is over", late, 10*time.Second, 0)
	q.unrule(pause)
	q.granted("one that waits until the end", w, 12*time.Second)

	q.pass(2 * time.Second)
	q.rule("PAUSE", time.Hour)
	w = q.await(2*time.Hour, perSecond)
	deny := q.rule("DENY", time.Minute)
	q.denied("one that is denied now", w, 0, time.Minute)
	q.unrule(deny)
	allow := q.rule("ALLOW", 0)
	q.denied("one that a rule allows as well", q.await(0, perSecond), 0, time.Hour)
	q.unrule(allow)
	q.unrule(pause)
}

// waitCosts: each waits for what it takes of a limit with a name, under the present limits of its policy, also behind others.
func waitCosts(q *queuer) {
	ask := func(terms store.Terms, cost int64) *inLine {
		w := &inLine{began: time.Now()}
		calls := q.calls("k", "@p")
		for i := range calls {
			if calls[i].Limit.Name.String() == "a" {
				calls[i].Own, calls[i].Cost = true, cost
			}
		}
		w.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms}}
		if q.store.TakeBatch(w.reqs[:], store.Access{NowNS: w.began.UnixNano()}, w) {
			w.Wake()
		}
		q.decide()
		return w
	}
	q.plan("10/10s,name=a")
	q.granted("the first", ask(q.terms(0, ""), 10), 0)
	five, three := ask(q.terms(time.Minute, ""), 5), ask(q.terms(time.Minute, ""), 3)
	q.denied("one whose turn comes after 12 s", ask(q.terms(11*time.Second, ""), 4), 0, 0)
	four := ask(q.terms(13*time.Second, ""), 4)
	q.pass(13 * time.Second)
	q.granted("who takes 5", five, 5*time.Second)
	q.granted("who takes 3", three, 8*time.Second)
	q.granted("who takes 4", four, 12*time.Second)

	q.plan("10/10s,name=a")
	q.pass(20 * time.Second)
	q.granted("the first of the next", ask(q.terms(0, ""), 10), 0)
	job := ask(q.terms(time.Minute, "job"), 2)
	repeat, other := ask(q.terms(time.Minute, "job"), 2), ask(q.terms(time.Minute, "job"), 3)
	q.denied("one behind a repeat that asks for more", ask(q.terms(5500*time.Millisecond, ""), 1), 0, 0)
	q.plan("1000/1h 10/10s,name=a")
	q.pass(6 * time.Second)
	q.granted("a call whose plan has changed", job, 2*time.Second)
	q.granted("its repeat", repeat, 2*time.Second)
	if calls := job.reqs[0].Calls; len(calls) != 2 || calls[0].Own || !calls[1].Own || calls[1].Cost != 2 {
		q.Errorf("it takes %+v", calls)
	}
	q.granted("a repeat that asked for more, of what is leased now", other, 2*time.Second)
}

// takes asks for requests that do not wait, and returns the first.
func (q *queuer) takes(reqs []store.TakeRequest) *store.TakeRequest {
	w := &inLine{}
	if q.store.TakeBatch(reqs, store.Access{NowNS: time.Now().UnixNano()}, w) {
		w.Wake()
	}
	q.pass(0)
	return &reqs[0]
}

// waitForState: callers are counted for the state that they wait for, with those who have joined others.
func waitForState(q *queuer) {
	const window = "1/2s,algo=window"
	q.plan(perSecond)
	q.spend(perSecond)
	q.spend(window)
	q.spend("@p")
	q.await(time.Minute, perSecond)
	q.await(time.Minute, window)
	q.ask(q.terms(time.Minute, "job"), 1, "k", window)
	q.ask(q.terms(time.Minute, "job"), 1, "k", window)
	q.waitingFor(1, perSecond)
	q.waitingFor(1, "5/1s") // which shares its state
	q.waitingFor(3, window)
	q.waitingFor(0, "@p")
	q.waitingFor(0, "1/1h")
	q.await(time.Minute, "@p")
	q.waitingFor(1, "@p")
	q.pass(2 * time.Second)
	q.waitingFor(0, perSecond)
	q.waitingFor(2, window)
	q.pass(2 * time.Second)
}
