package decide

import (
	"celld/resp/command"
	"celld/store"
)

// nameTaken answers a CL.TAKE with NAMED: names and values in place of positions.
func nameTaken(out *command.Reply, f *Shape, r *store.TakeRequest) {
	taken := &r.Taken
	d := &r.Calls[taken.Binding].Decision
	fields := 9
	if f.leases {
		fields++
	}
	if f.full {
		fields++
	}
	out.Map(fields)
	out.String("limited")
	out.Bool(taken.Limited)
	out.Field("limit", d.Limit)
	out.Field("remaining", d.Remaining)
	out.Field("retry_after", wait(taken.RetryAfterNS, f.unitNS))
	out.Field("reset_after", wait(taken.ResetAfterNS, f.unitNS))
	out.Field("granted", taken.Granted)
	nameTerms(out, f, r)
	nameBinding(out, r)
	if f.full {
		nameDecisions(out, "full", f, r)
	}
}

// nameMultiTaken does the same for CL.MTAKE.
func nameMultiTaken(out *command.Reply, f *Shape, r *store.TakeRequest) {
	taken, fields := &r.Taken, 8
	if f.leases {
		fields++
	}
	out.Map(fields)
	out.String("limited")
	out.Bool(taken.Limited)
	out.Field("bound", boundIndex(taken))
	out.Field("granted", taken.Granted)
	out.Field("retry_after", wait(taken.RetryAfterNS, f.unitNS))
	nameTerms(out, f, r)
	nameBinding(out, r)
	nameDecisions(out, "keys", f, r)
}

func nameTerms(out *command.Reply, f *Shape, r *store.TakeRequest) {
	left, lease := leftAndLease(f, r)
	out.Field("wait", left)
	if f.leases {
		out.Field("lease", lease)
	}
}

// nameBinding names the limit that binds. Where a rule has denied the call, none does.
func nameBinding(out *command.Reply, r *store.TakeRequest) {
	c := &r.Calls[r.Taken.Binding]
	byRule := denies(&c.Decision)
	if out.String("bound_by"); byRule {
		out.Null()
	} else {
		out.String(c.Limit.String())
	}
	if out.String("policy"); byRule || c.Policy == nil {
		out.Null()
	} else {
		out.String(c.Policy.Policy.Name)
	}
}

func nameDecisions(out *command.Reply, name string, f *Shape, r *store.TakeRequest) {
	out.String(name)
	out.Array(len(r.Calls))
	for i := range r.Calls {
		nameDecision(out, &r.Calls[i], f.unitNS)
	}
}

func nameDecision(out *command.Reply, c *store.Call, unitNS uint64) {
	d, name := &c.Decision, c.Limit.Name.String()
	out.Map(6)
	out.String("limited")
	out.Bool(d.Limited)
	out.Field("limit", d.Limit)
	out.Field("remaining", d.Remaining)
	out.Field("retry_after", wait(d.RetryAfterNS, unitNS))
	out.Field("reset_after", wait(d.ResetAfterNS, unitNS))
	if out.String("name"); name == "" {
		out.Null()
	} else {
		out.String(name)
	}
}
