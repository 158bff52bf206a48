package resp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/gate"
	"celld/resp/metrics"
	"celld/resp/stats"
	"celld/store/policy"
)

// Overview is what the live page shows, as JSON. Numbers that only grow count since the start. Milliseconds of Unix are 0 for never.
// Fields that are no list are those of metrics.
type Overview struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	UnixMs  int64  `json:"unix_ms"`
	Uptime  int64  `json:"uptime_ms"`

	Troubles []string `json:"troubles"` // why calls are not decided as they should be, a line each

	Allowed  int64            `json:"allowed"` // calls, each under the limit that binds
	Limited  int64            `json:"limited"`
	Policies []OverviewPolicy `json:"policies"`      // those that decide most, 50 at most
	Others   int              `json:"more_policies"` // how many more there are

	// The keys that were denied most, that call most, and that came near to their limits most, in the last minute, 10 of each at most.
	Denied []OverviewKey `json:"most_limited"`
	Calls  []OverviewKey `json:"most_calls"`
	Near   []OverviewKey `json:"most_near"`

	Keys    *OverviewKeys   `json:"keys"` // nil: an engine has them
	Heap    int64           `json:"heap_bytes"`
	Memory  int64           `json:"process_bytes"`
	Latency OverviewLatency `json:"latency"`
	Waiting struct {        // for their turn, and those that were granted after a wait
		Calls   int64 `json:"calls"`
		Keys    int64 `json:"keys"`
		Most    int64 `json:"most"`
		Granted int64 `json:"granted"`
	} `json:"waiting"`
	Connections struct { // of clients of RESP
		Open     int64 `json:"open"`
		Most     int64 `json:"most"`
		Received int64 `json:"received"`
		Refused  int64 `json:"refused"`
	} `json:"connections"`
	Errors int64 `json:"error_replies"`

	Engine      *OverviewEngine `json:"engine"` // nil: limits are kept in memory
	Files       *OverviewFiles  `json:"files"`  // nil: an engine has the limits
	Certificate int64           `json:"certificate_ends_unix_ms"`
}

// OverviewPolicy is a policy, or all limits without one of an algorithm: see decisions.Shown.
type OverviewPolicy struct {
	Policy    string `json:"policy"`
	Limits    string `json:"limits"` // of the policy, as CL.POLICY GET has them; empty: it is none, or gone
	Algorithm string `json:"algorithm"`
	Allowed   int64  `json:"allowed"`
	Limited   int64  `json:"limited"`
	Near      int64  `json:"near"`           // of the allowed
	Shadow    int64  `json:"shadow_limited"` // would have been limited, except for shadow
}

// OverviewKey is a key that comes often. What is not printable in it is written as in Go: \x00.
type OverviewKey struct {
	Key   string `json:"key"`
	Count int64  `json:"count"`
}

// OverviewKeys are the keys in the table. 0 for most bytes: there is no bound.
type OverviewKeys struct {
	Held      int64 `json:"held"`
	Most      int64 `json:"most"`
	Bytes     int64 `json:"bytes"`
	MostBytes int64 `json:"most_bytes"`
	Expired   int64 `json:"expired"`
	Evicted   int64 `json:"evicted"`
}

// OverviewLatency counts commands by their duration; those of a pipeline take the mean of their batch. Calls[i] took at most MostNS[i], and
// more than the one before. What took longer than the last counts there.
type OverviewLatency struct {
	MostNS []int64 `json:"most_ns"`
	Calls  []int64 `json:"calls"`
}

// OverviewEngine is who keeps the limits with --store.
type OverviewEngine struct {
	Kind     string `json:"kind"`
	Version  string `json:"version"`
	Mode     string `json:"mode"` // engine, or what --store-failure says while it is away
	Since    int64  `json:"since_unix_ms"`
	Calls    int64  `json:"calls"`
	Failures int64  `json:"failures"`
	Ahead    int64  `json:"decided_ahead"`   // by units that were taken ahead
	Without  int64  `json:"decided_without"` // by --store-failure allow, deny or local
	Refused  int64  `json:"refused"`         // by --store-failure error
}

// OverviewFiles are the snapshot and the append-only file.
type OverviewFiles struct {
	Snapshot *OverviewSnapshot `json:"snapshot"` // nil: none are taken
	Log      *OverviewLog      `json:"append_only"`
}

type OverviewSnapshot struct {
	Taken   int64 `json:"taken_unix_ms"` // since the start
	Changes int64 `json:"changes_since"`
	Failed  bool  `json:"failed"`
}

type OverviewLog struct {
	Bytes   int64 `json:"bytes"`
	Pending int64 `json:"pending_bytes"`
	Failed  bool  `json:"failed"`
}

const (
	overviewPolicies = 50
	overviewKeys     = 10
)

// Overview reads the state. It takes 1 ms or so, and holds up no event loop. Any goroutine may call it.
func (srv *Server) Overview() *Overview {
	v := &Overview{Troubles: srv.troubles(), Latency: srv.readLatency()}
	v.policies(srv.sessions.Decisions.List(), srv.sessions.Store.PolicyNamed)
	srv.sessions.Top.Advance(srv.sessions.Clock())
	for by, list := range map[decisions.By]*[]OverviewKey{
		decisions.ByDenied: &v.Denied, decisions.ByCalls: &v.Calls, decisions.ByNear: &v.Near,
	} {
		*list = []OverviewKey{}
		for _, d := range srv.sessions.Top.Most(by, decisions.Minute, overviewKeys, decisions.Any) {
			*list = append(*list, OverviewKey{metrics.Printable(d.Key), d.Count})
		}
	}
	if !srv.sessions.Port.InProcess() {
		v.Engine = &OverviewEngine{}
	} else {
		v.Keys, v.Files = &OverviewKeys{}, &OverviewFiles{}
		st := srv.sessions.Persist.Status()
		if st.Saves > 0 || st.SaveErr != nil || srv.sessions.Config.Save.Get() != "" {
			v.Files.Snapshot = &OverviewSnapshot{}
		}
		if st.AOF {
			v.Files.Log = &OverviewLog{}
		}
	}
	metrics.Fill(v, srv.Metrics())
	return v
}

// add adds what another limit of a policy has decided.
func (p *OverviewPolicy) add(limit OverviewPolicy) {
	p.Allowed, p.Limited = p.Allowed+limit.Allowed, p.Limited+limit.Limited
	p.Near, p.Shadow = p.Near+limit.Near, p.Shadow+limit.Shadow
	if !slices.Contains(strings.Split(p.Algorithm, "+"), limit.Algorithm) {
		p.Algorithm += "+" + limit.Algorithm
	}
}

// policies keeps those that have decided most.
func (v *Overview) policies(decided []decisions.LimitCounts, named func(name string) *policy.Policy) {
	list := []OverviewPolicy{}
	for i, d := range decided {
		allowed, limited := d.Counts.Decided()
		p := OverviewPolicy{Policy: metrics.Printable(decisions.Shown(d.Policy)), Algorithm: d.Algorithm.String(), Allowed: allowed,
			Limited: limited, Near: d.Counts[decisions.Near], Shadow: d.Counts[decisions.ShadowLimited]}
		if is := named(d.Policy); is != nil {
			p.Limits = is.String()
		}
		switch {
		case d.Period != "" && i > 0 && decided[i-1].Policy == d.Policy && len(list) > 0 && list[len(list)-1].Policy == p.Policy:
			list[len(list)-1].add(p)
		case p.Allowed+p.Limited+p.Shadow > 0:
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b OverviewPolicy) int { return cmp.Compare(b.Allowed+b.Limited, a.Allowed+a.Limited) })
	v.Policies = list[:min(len(list), overviewPolicies)]
	v.Others = len(list) - len(v.Policies)
}

// troubles are the reasons for which Ready fails, and others that an operator should know, without asking the store.
func (srv *Server) troubles() []string {
	list := []string{}
	if srv.life.leaving.Load() {
		list = append(list, "the server is stopping")
	}
	if srv.sessions.Gate.Has(gate.Loading) {
		list = append(list, "the files are being read")
	}
	if srv.sessions.Gate.Has(gate.Busy) {
		list = append(list, "a script has run for more than lua-time-limit, and nobody else is answered")
	}
	list = append(list, srv.files.Troubles()...)
	if !srv.sessions.Port.InProcess() {
		facts := srv.sessions.Port.Facts()
		if facts.Away != nil {
			list = append(list, "the engine is away: "+metrics.Printable(facts.Away.Error()))
		}
		if n := facts.SlotsWithoutMaster; n > 0 {
			list = append(list, fmt.Sprintf("%d slots of the engine's Cluster have no master", n))
		}
		return list
	}
	if bound := srv.upkeep.full.Load(); bound != nil {
		list = append(list, "the table is full ("+*bound+"), and what is new is refused")
	}
	files := srv.sessions.Persist.Status()
	if files.AOFErr != nil {
		list = append(list, "changes do not reach the append-only file")
	}
	if files.RewriteErr != nil {
		list = append(list, "the last rewrite of the append-only file failed")
	}
	if files.SaveErr != nil {
		list = append(list, "the last snapshot failed")
	}
	return list
}

// readLatency adds up the commands.
func (srv *Server) readLatency() (v OverviewLatency) {
	var all stats.TimesRead
	srv.sessions.Commands.Each(func(row *command.Row) { stats.Of(row).AddTo(&all) })
	v.MostNS, v.Calls = all.Steps()
	return v
}
