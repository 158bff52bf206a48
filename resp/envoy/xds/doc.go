// Package xds takes a configuration from a server by xDS, as the state of the world. It does not know what is configured.
//
//	c := xds.New(xds.Options{Server: "envoy-gateway:18001", Ask: message.Subscription{Node: "celld", TypeURL: …}, Take: take, …})
//	c.Run(ctx)            // until ctx ends
//	c.Counts()            // how often a configuration was taken, and refused
//
// The protocol is https://www.envoyproxy.io/docs/envoy/v1.37.0/api-docs/xds_protocol, on one stream of
// envoy.service.discovery.v3.AggregatedDiscoveryService. Each response is all that there is, and replaces what was there. It is taken, or
// refused as a whole, and the one before stays in force. So it does while the server is away.
//
// The client is net/http's, with HTTP/2: gRPC's own is 8 MB of binary. It sends no PINGs: a server of grpc-go ends a connection after four
// of them within 5 minutes. TCP's keepalive finds a peer that is gone.
package xds
