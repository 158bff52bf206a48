// Package envoy answers Envoy's rate limit service by gRPC, as envoyproxy/ratelimit does, and by JSON over HTTP. It knows no sessions, and
// not how a limit is computed: it asks the store's port.
//
//	err := envoy.Serve(server, envoy.Options{…}, log) // until the server stops
//
// What envoyproxy/ratelimit does is meant as of its commit f2fb157.
//
// # How a call of Envoy's is decided
//
//  1. service.shouldRateLimit in calls.go has the call read by message/protobuf.go, and port.json in http.go by message/json.go.
//  2. answer.find in service.go finds the limit of each descriptor in the set of domains that port.take has loaded.
//  3. answer.add makes a request to the store of each: a counter that is forced, or the limit of an algorithm. With --envoy-all-or-none,
//     answer.decideTogether in together.go makes one of all.
//  4. answer.send has Door.Decide in resp/door/door.go ask the store, count the decisions, and wait for the disk.
//  5. answer.judge compares what was counted with the limit, and answer.response in response.go tells statuses, headers and metadata.
package envoy
