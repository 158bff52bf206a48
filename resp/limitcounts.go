package resp

import "celld/cell"

// LimitCounts is how the calls under a policy with one algorithm were decided, since the start. Each call counts once, under the limit
// that binds, but for ShadowLimited and ShadowAllowed. What does not count is as for decisions.
type LimitCounts struct {
	Policy    string // empty: limits without a name; "other": those of all policies but the first 100
	Algorithm string

	ThrottleAllowed, ThrottleLimited int64 // CL.THROTTLE and GCRA
	TakeAllowed, TakeLimited         int64 // CL.TAKE and CL.MTAKE

	Blocked       int64 // the limited calls of a limit with block=, which has its key denied for that long
	RuleDenied    int64 // the limited calls that a rule denied
	PartlyGranted int64 // the allowed calls that got less than they asked for (UPTO)

	ShadowLimited, ShadowAllowed int64 // what a limit with shadow would have decided
}

// LimitCounts returns the counts of all that were ever asked, some 100 at most. They never fall, and have all decisions that INFO
// has. Any goroutine may call it.
func (srv *Server) LimitCounts() (list []LimitCounts) {
	srv.stats.decisions.each(func(policy string, algo cell.Algo, row *decisionRow) {
		n := row.read()
		if n == (decisions{}) && (policy != "" || algo != cell.GCRA) {
			return
		}
		list = append(list, LimitCounts{
			Policy: policy, Algorithm: algo.String(),
			ThrottleAllowed: n[throttleAllowed], ThrottleLimited: n[throttleLimited], TakeAllowed: n[takeAllowed], TakeLimited: n[takeLimited],
			Blocked: n[blocked], RuleDenied: n[ruleDenied], PartlyGranted: n[partlyGranted],
			ShadowLimited: n[shadowLimited], ShadowAllowed: n[shadowAllowed],
		})
	})
	return list
}
