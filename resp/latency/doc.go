// Package latency keeps what took long and when, for LATENCY.
//
//	m := latency.New(threshold, wallNS)
//	m.Note(latency.Fsync, nowNS, tookNS) // kept if it took the threshold or longer
//	rows := latency.Rows(m, table)       // LATEST, HISTORY, RESET, DOCTOR, HISTOGRAM
//
// It needs no limit, as there are only three events.
package latency
