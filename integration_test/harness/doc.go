// Package harness starts what the tests in integration_test compare: the built celld, redis-server with or without
// redis-cell in it, and other servers; and connects to them, reads their replies and waits for what they do. It holds what
// the tests of several folders use. What one folder uses alone stays there:
//
//	clients      client libraries of all languages, tools such as redis-cli, the examples
//	deploy       the image, and the files for Compose and Kubernetes
//	peers        the limiters that CL.THROTTLE and CL.TAKE stand in for: redis-cell, redis_rate, nginx, Guava, Redisson, Sentinel, scripts
//	engine       limits on Redis and Valkey, alone, as Cluster and with Sentinels, and what happens when they fail
//	persistence  files: restarts, crashes, full disks, the way to redis-server and back
//	redis        the commands that Redis has too, compared with redis-server byte for byte
//	server       flags, sockets, bounds, passwords, hostile and many clients, the end
//	soak         all at once, for hours
//	take         what CL.THROTTLE, CL.TAKE and policies answer where nobody else has the like
//
// The tests drive the built binary over real sockets. They know nothing of celld's internals except package cell, which
// folder peers asks at instants that it sets.
//
//	go test ./integration_test/...                      whatever the tools on this machine allow; the rest is skipped, by name
//	CI=true go test ./integration_test/...              a missing tool is a failure
//	go test ./integration_test/peers -args -seed 7      the random calls of an earlier run again (each run logs its seed)
//
// A test starts servers of its own on ports the kernel chooses and sees them end: every celld must exit with code 0 when
// it is told to, after whatever the test did to it.
package harness

import _ "pgregory.net/rapid" // its flags, so that all packages can be run with one seed
