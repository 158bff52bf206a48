// Package decisions counts how calls were decided, and finds the keys that are limited most: CL.STATS, CL.TOP and their metrics. It knows
// no sessions.
//
//	rows, denied := decisions.NewRows(policies), decisions.NewDenied(policies)
//	row := rows.Of(policy)                          // once for a limit of a call
//	batch.In(row, lane)[decisions.TakeAllowed]++    // for each call
//	batch.Settle(lane, err)                         // at the end of a batch, or when its changes are on the disk
//	denied.Add([]decisions.Denial{{Hash: hash, Key: key}})
//	denied.Most(10, decisions.Any)
//
// There is a row for each policy with one algorithm, and one of literals for each algorithm. Metrics tell 100 policies by name.
package decisions
