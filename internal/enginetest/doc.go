// Package enginetest simulates a Redis or Valkey, alone, as Cluster or with Sentinels, as far as celld uses one, with its faults.
//
//	e := enginetest.Start(t, enginetest.Options{Kind: enginetest.Cluster, Replicas: 1, Lag: 5 * time.Millisecond})
//	remote.Open(remote.Options{URL: e.URL(), Dial: e.Dial, …})
//	e.Failover(e.MasterOf("key"))   // what the replica had not received is lost
//
// An Engine opens no sockets: Serve speaks RESP2 and RESP3 on any net.Conn. It draws from Options.Rand alone, and takes the time from
// package time, or from Options.Clock. So where these and the order of goroutines repeat, all that it does repeats.
//
// # What is simulated
//
//   - the commands that docs/how-to/share-limits.md allows celld's user, and those that its client sends, as Redis 7 runs them. Any other
//     is answered with Redis's error, and Unknown tells it
//   - scripts, by resp/script: it runs them as Redis does, and calls back for each command
//   - replicas that lag, files that lag, and the order of checks that a server makes before it runs a command
//   - what each node knows of the others, which may be out of date
//
// A node answers at once: latency is the connection's. A whole Engine has one lock, so each command is atomic.
//
// # Why not miniredis
//
// github.com/alicebob/miniredis/v2 (2.40) serves connections without a socket, too. But a Miniredis is one node: it has no replicas, roles,
// MOVED, ASK, Sentinels or maxmemory, and its commands can neither be run again on a replica nor be refused before they run.
package enginetest
