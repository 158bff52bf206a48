// Package stats counts what the server does: its connections and bytes, each command's calls and their durations, errors by their words.
//
//	st := stats.NewServer()
//	st.InputBytes.Add(lane, n)        // on the lane of a batch, so that cores do not take a cache line from each other
//	stats.Of(row).Read()              // a command's calls
//	var b stats.Batch                 // gathers those of a pipeline: 64 decisions cost one addition to shared memory
//
// What is counted only grows, except by CONFIG RESETSTAT for commands and errors.
package stats
