// Package decisions counts how calls were decided, and finds the keys that come most often: CL.STATS, CL.TOP and their metrics. It knows
// no sessions.
//
//	rows, top := decisions.NewRows(policies), decisions.NewTop(policies)
//	row := rows.Of(policy)                          // once for a limit of a call
//	batch.In(row, lane)[decisions.TakeAllowed]++    // for each call
//	batch.Settle(lane, err)                         // at the end of a batch, or when its changes are on the disk
//	top.Add([]decisions.Came{{By: decisions.ByDenied, N: 1, Hash: hash, Key: key}})
//	top.Advance(nowNS)
//	top.Most(decisions.ByDenied, decisions.Minute, 10, decisions.Any)
//
// There is a row for each policy with one algorithm, and one of literals for each algorithm. Metrics tell 100 policies by name.
package decisions
