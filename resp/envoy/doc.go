// Package envoy answers Envoy's rate limit service by gRPC, as envoyproxy/ratelimit does, and by JSON over HTTP. It knows no sessions, and
// not how a limit is computed: it asks the store's port.
//
//	door, err := envoy.Open(server, cfg.EnvoyOptions(), log) // listens, and has read the configuration
//	door.Serve()                                             // until the server stops
//
// A request goes this way: message reads it, domains finds the limit of each descriptor, service.go makes a request to the store of each,
// and tells statuses, headers and metadata from the answers. What envoyproxy/ratelimit does is named with its commit f2fb157.
package envoy
