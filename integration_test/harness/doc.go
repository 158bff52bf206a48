// Package harness starts what the tests in integration_test compare: the built celld, redis-server with or without
// redis-cell in it, and other servers; and connects to them, reads their replies and waits for what they do. It holds what
// the tests of several folders use. What one folder uses alone stays there:
//
//	clients      client libraries of all languages, tools such as redis-cli, the examples
//	counting     libraries that limit by counting in Redis, and run unchanged
//	deploy       the image, and the files for Compose and Kubernetes
//	peers        the limiters that CL.THROTTLE and CL.TAKE stand in for: redis-cell, redis_rate, nginx, Guava, Redisson, Sentinel, scripts
//	engine       limits on Redis and Valkey, alone, as Cluster and with Sentinels, and what happens when they fail
//	envoy        Envoy's rate limit service: by gRPC and HTTP, beside envoyproxy/ratelimit, behind an Envoy
//	persistence  files: restarts, crashes, full disks, the way to redis-server and back
//	redis        the commands that Redis has too, compared with redis-server byte for byte
//	server       flags, sockets, bounds, passwords, hostile and many clients, the end
//	soak         all at once, for hours
//	take         what CL.THROTTLE, CL.TAKE and policies answer where nobody else has the like
//
// Package engines, below this one, starts the engines: servers alone, Clusters, and servers that Sentinels watch. What tests of the
// product share with these is in celld/internal/celldtest.
//
// The tests drive the built binary over real sockets. They know nothing of celld's internals, with three exceptions: folder peers asks
// package cell at instants that it sets, folder persistence compares package rdb with another library, and folder engine asks package
// remote what each store promises.
//
//	go -C integration_test test ./...                       whatever the tools on this machine allow; the rest is skipped, by name
//	CI=true go -C integration_test test ./...               a missing tool is a failure
//	go -C integration_test test ./peers -args -seed 7       the random calls of an earlier run again (each run logs its seed)
//
// A test starts servers of its own on ports the kernel chooses and sees them end: every celld must exit with code 0 when
// it is told to, after whatever the test did to it.
package harness

import _ "pgregory.net/rapid" // its flags, so that all packages can be run with one seed
