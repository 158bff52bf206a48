//go:build linux

// Bench compares celld with its peers on one machine: it starts each server in turn, drives all with the same load, and
// prints what a command costs the server in CPU, how long the answers take and how much memory keys and connections
// need. README.md says what each column is.
//
//	go -C bench run .                       everything, in 3 interleaved rounds
//	go -C bench run . -quick                a tenth of the requests, no 10M keys, 1 round
//	go -C bench run . -rows '^p128' -peers celld,ping -rounds 1
//
// A row of the table in rows.go is one piece of work; its kind (drive, checks, rateLimits, fill, idle, save, waiting, onEngine, added,
// cores) says how it is done and measured. A peer in peers.go is a server: how it is started, asked and counted. One step is one row on one
// peer in one round, on a server that was just started and that ends with the step. Rows of the kind cores start none: they run Go
// benchmarks.
package main
