package failure

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/link"
)

// Options say how calls are decided. Policies, NewID, Log and Counts must be set.
type Options struct {
	Modes Modes

	LocalShare int   // of Local: a limit's 1/LocalShare; 0: 20
	LocalKeys  int64 // most keys in Local's table; 0: 1,000,000
	LocalBytes int64 // most bytes of these; 0: no limit

	Policies *policy.Set
	NewID    func(us int64) uint64 // of leases
	Log      *slog.Logger
	Counts   *Counts
}

// Counts count the calls that the engine has not decided.
type Counts struct {
	DecidedWithout atomic.Int64 // by Allow, Deny and Local
	Refused        atomic.Int64 // answered with an error: Error
}

// Decider decides while the engine does not. Calls come here with the error that they would be answered with. A *link.DownError of whatever
// cause is replaced by what the Modes say. Any other error is about the call or this process, and stays: store.ErrFull and ErrWrongType
// are the engine's own answers, and with link.ErrBusy so much waits that the process must shed load, whatever the mode.
type Decider struct {
	options Options
	modes   atomic.Pointer[Modes]

	mu    sync.Mutex // held while the table is made
	table atomic.Pointer[memory.Store]

	without [2]int64 // the Counts when the outage began
}

// New returns a Decider.
func New(o Options) *Decider {
	f := &Decider{options: o}
	f.SetModes(o.Modes)
	return f
}

// SetModes says what is answered from now on while the engine does not answer.
func (f *Decider) SetModes(m Modes) { f.modes.Store(&m) }

// Mode is the mode of calls, except under policies that have another.
func (f *Decider) Mode() Mode { return f.modes.Load().All }

// Begins notes that the engine does not answer from now on.
func (f *Decider) Begins(why string) {
	c := f.options.Counts
	f.without = [2]int64{c.DecidedWithout.Load(), c.Refused.Load()}
	f.options.Log.Warn("the engine does not answer, calls go by --store-failure", "mode", f.modes.Load().String(), "why", why)
}

// Ends notes that the engine answers again. The table of Local lives until then: so an engine that comes and goes does not reset its limits
// each time. What the table has granted is not carried over to the engine.
func (f *Decider) Ends(lasted time.Duration) {
	c := f.options.Counts
	f.options.Log.Info("the engine answers again", "after", lasted.Round(time.Millisecond),
		"decided_without", c.DecidedWithout.Load()-f.without[0], "refused", c.Refused.Load()-f.without[1])
	f.table.Store(nil)
}

// deniedNS is when to retry what is denied as the engine does not answer. Its breaker asks the engine several times meanwhile.
const deniedNS = 1_000_000_000

// decision is the answer of Allow and Deny under a limit of this capacity.
func (f Mode) decision(capacity int64) cell.Decision {
	if f == Deny {
		return cell.Decision{Limited: true, Limit: capacity, RetryAfterNS: deniedNS, ResetAfterNS: deniedNS}
	}
	return cell.Decision{Limit: capacity, Remaining: capacity, RetryAfterNS: cell.Never}
}

// Throttle answers a call that the engine has not decided, for this reason. The call's key must be its own, which nobody else changes. The
// caller checks the rules first.
func (f *Decider) Throttle(r *store.Request, cause error, a store.Access) {
	mode := f.modes.Load().All
	if !f.decides(mode, cause) {
		r.Decision, r.Err = cell.Decision{}, cause
		return
	}
	if mode == Local {
		f.throttleLocally(r, a)
		return
	}
	r.Decision, r.Err = mode.decision(r.Bucket.Capacity()), nil
}

// Take is Throttle for a Take. It looks for rules. A call that is allowed or denied takes nothing, gives back nothing, holds no lease and
// does not wait. A limit with shadow limits nobody.
func (f *Decider) Take(r *store.TakeRequest, cause error, a store.Access) {
	looks := r.Cost >= 0 || r.Look
	if looks && errors.As(cause, new(*link.DownError)) && f.ruled(r, a) {
		return
	}
	mode := f.modeOf(r.Calls)
	if !f.decides(mode, cause) {
		r.Taken, r.Err = store.Taken{}, cause
		return
	}
	if mode == Local {
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
		if rule := c.Rule(f.options.Policies, a.NowNS); rule != nil { // it allows, or ruled would have decided
			d = rule.Decision(c.Limit.Capacity(), a.NowNS)
		}
		c.Answer(d)
		t.ResetAfterNS = max(t.ResetAfterNS, d.ResetAfterNS)
		if !found && !c.Limit.Shadow && d.Limited == (mode == Deny) {
			t.Binding, found = i, true
		}
	}
	switch {
	case mode == Deny && found:
		t.Limited, t.RetryAfterNS = true, deniedNS
	case r.Mode != cell.Peek:
		t.Granted = max(r.Cost, 0)
	}
}

// ruled decides on a Take by rules where these are enough: one of them denies, or there is one for each key.
func (f *Decider) ruled(r *store.TakeRequest, a store.Access) bool {
	policies := f.options.Policies
	if !policies.HasRules() {
		return false
	}
	denied, all := false, true
	for i := range r.Calls {
		rule := r.Calls[i].Rule(policies, a.NowNS)
		denied = denied || rule != nil && rule.Deny
		all = all && rule != nil
	}
	if denied || all {
		r.Taken, r.Err = f.local().Take(r.Calls, r.TakeOptions, a) // which stores nothing then
	}
	return denied || all
}

// modeOf is the strictest Mode of some calls.
func (f *Decider) modeOf(calls []store.Call) Mode {
	modes := f.modes.Load()
	if modes.Alike() {
		return modes.All
	}
	mode := Allow
	for i := range calls {
		name := ""
		if l := calls[i].Policy; l != nil {
			name = l.Policy.Name
		}
		if m := modes.Of(name); strictness[m] > strictness[mode] {
			mode = m
		}
	}
	return mode
}

// decides reports whether a call that failed for this reason is decided by a mode, and counts it.
func (f *Decider) decides(mode Mode, cause error) bool {
	switch {
	case !errors.As(cause, new(*link.DownError)):
		return false
	case mode == Error:
		f.options.Counts.Refused.Add(1)
		return false
	}
	f.options.Counts.DecidedWithout.Add(1)
	return true
}
