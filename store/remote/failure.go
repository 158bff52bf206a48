package remote

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
)

// failure decides while the engine does not. Calls come here with the error that they would be answered with. A *DownError of whatever
// cause is replaced by what the Failures say. Any other error is about the call or this process, and stays: store.ErrFull and
// ErrWrongType are the engine's own answers, and with ErrBusy so much waits that the process must shed load, whatever the mode.
type failure struct {
	store *Store
	modes atomic.Pointer[Failures]

	mu    sync.Mutex // who makes the table
	table atomic.Pointer[memory.Store]

	without [2]int64 // DecidedWithout and Refused when the outage began
}

func (f *failure) init(s *Store) {
	f.store = s
	f.modes.Store(&s.options.Failures)
}

// begins tells that the engine does not answer from now on.
func (f *failure) begins(why string) {
	st := &f.store.stats
	f.without = [2]int64{st.DecidedWithout.Load(), st.Refused.Load()}
	f.log().Warn("the engine does not answer, calls go by --store-failure", "mode", f.modes.Load().String(), "why", why)
}

// ends tells that it answers again. The table of FailLocal lives until then, so that an engine that comes and goes does not make its limits
// full again each time.
func (f *failure) ends(lasted time.Duration) {
	st := &f.store.stats
	f.log().Info("the engine answers again", "after", lasted.Round(time.Millisecond),
		"decided_without", st.DecidedWithout.Load()-f.without[0], "refused", st.Refused.Load()-f.without[1])
	f.forget()
}

func (f *failure) log() *slog.Logger {
	if log := f.store.options.Log; log != nil {
		return log
	}
	return slog.New(slog.DiscardHandler)
}

// Mode is who decides on calls, and since when: engine, or error, allow, deny or local while a part of it or all of it is known not to
// answer. Policies may have others.
func (s *Store) Mode() (name string, since time.Time) {
	all, since := s.link.Answers()
	if all {
		return "engine", since
	}
	return s.failure.modes.Load().all.String(), since
}

// SetFailures says what is answered from now on while the engine does not answer.
func (s *Store) SetFailures(f Failures) { s.failure.modes.Store(&f) }

// deniedNS is when to retry what is denied as the engine does not answer. Its breaker asks the engine several times meanwhile.
const deniedNS = 1_000_000_000

// decision is the answer of FailAllow and FailDeny under a limit of this capacity.
func (f Failure) decision(capacity int64) cell.Decision {
	if f == FailDeny {
		return cell.Decision{Limited: true, Limit: capacity, RetryAfterNS: deniedNS, ResetAfterNS: deniedNS}
	}
	return cell.Decision{Limit: capacity, Remaining: capacity, RetryAfterNS: cell.Never}
}

// throttle answers a call that the engine has not decided, for this reason. Its key must be the call's own again, and nobody else's to
// change. A rule has been looked for before.
func (f *failure) throttle(r *store.Request, cause error, a store.Access) {
	mode := f.modes.Load().all
	if !f.decides(mode, cause) {
		r.Decision, r.Err = cell.Decision{}, cause
		return
	}
	if mode == FailLocal {
		f.throttleLocally(r, a)
		return
	}
	r.Decision, r.Err = mode.decision(r.Bucket.Capacity()), nil
}

// take is throttle for a Take. It looks for rules. What is allowed or denied takes nothing, holds no lease and waits for nothing; gives
// back nothing; and a limit with shadow limits nobody.
func (f *failure) take(r *store.TakeRequest, cause error, a store.Access) {
	looks := r.Cost >= 0 || r.Look
	if looks && errors.As(cause, new(*DownError)) && f.ruled(r, a) {
		return
	}
	mode := f.modeOf(r.Calls)
	if !f.decides(mode, cause) {
		r.Taken, r.Err = store.Taken{}, cause
		return
	}
	if mode == FailLocal {
		f.takeLocally(r, a)
		return
	}
	r.Taken, r.Err = store.Taken{RetryAfterNS: cell.Never}, nil
	if r.Terms != nil {
		r.Terms.Lease, r.Terms.WaitNS = 0, 0
	}
	if !looks {
		return
	}
	t, found := &r.Taken, false
	for i := range r.Calls {
		c := &r.Calls[i]
		d := mode.decision(c.Limit.Capacity())
		if rule := f.store.policies.Rule(c.Key, a.NowNS); rule != nil { // it allows, or ruled would have decided
			d = rule.Decision(c.Limit.Capacity(), a.NowNS)
		}
		c.Answer(d)
		t.ResetAfterNS = max(t.ResetAfterNS, d.ResetAfterNS)
		if !found && !c.Limit.Shadow && d.Limited == (mode == FailDeny) {
			t.Binding, found = i, true
		}
	}
	switch {
	case mode == FailDeny && found:
		t.Limited, t.RetryAfterNS = true, deniedNS
	case r.Mode != cell.Peek:
		t.Granted = max(r.Cost, 0)
	}
}

// ruled decides on a Take by rules where these are enough: one of them denies, or there is one for each key.
func (f *failure) ruled(r *store.TakeRequest, a store.Access) bool {
	policies := f.store.policies
	if !policies.HasRules() {
		return false
	}
	denied, all := false, true
	for i := range r.Calls {
		rule := policies.Rule(r.Calls[i].Key, a.NowNS)
		denied = denied || rule != nil && rule.Deny
		all = all && rule != nil
	}
	if denied || all {
		one := [1]store.TakeRequest{*r}
		f.local().TakeBatch(one[:], a, nil) // which stores nothing then
		r.Taken, r.Err = one[0].Taken, one[0].Err
	}
	return denied || all
}

// modeOf is the strictest Failure of some calls.
func (f *failure) modeOf(calls []store.Call) Failure {
	modes := f.modes.Load()
	if len(modes.policies) == 0 {
		return modes.all
	}
	mode := FailAllow
	for i := range calls {
		name := ""
		if p := f.store.policies.PolicyOf(calls[i].Policy); p != nil {
			name = p.Name
		}
		if m := modes.of(name); strictness[m] > strictness[mode] {
			mode = m
		}
	}
	return mode
}

// decides reports whether a call that failed for this reason is decided by a mode, and counts it.
func (f *failure) decides(mode Failure, cause error) bool {
	switch {
	case !errors.As(cause, new(*DownError)):
		return false
	case mode == FailError:
		f.store.stats.Refused.Add(1)
		return false
	}
	f.store.stats.DecidedWithout.Add(1)
	return true
}
