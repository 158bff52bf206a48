// Package stats counts the server's work: its connections and bytes, each command's calls and their durations, errors by their words. It
// keeps what took long, for LATENCY and SLOWLOG. It knows no sessions.
//
//	st := stats.NewServer()
//	st.InputBytes.Add(lane, n)        // on the lane of a batch, so that cores do not take a cache line from each other
//	stats.Of(row).Read()              // a command's calls
//	var b stats.Batch                 // gathers those of a pipeline: 64 decisions cost one addition to shared memory
//	stats.NewLatency(threshold, wallNS).Note(stats.FsyncEvent, tookNS) // kept if it took the threshold or longer
//	stats.NewSlowlog(most).Add(stats.SlowEntry{US: 20_000, Args: stats.TrimArgs(n, args)})
//
// Counts only grow. CONFIG RESETSTAT sets those of commands and errors to 0.
package stats
