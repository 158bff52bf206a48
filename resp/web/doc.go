// Package web serves HTTP beside RESP: health for orchestrators, decisions for proxies, metrics for Prometheus, and a page for people.
//
//	server := resp.NewServer(…)
//	err := web.Serve(server, web.Options{…}, log) // until the server stops
//
// HTTP has its own listener and limits, so its traffic does not touch clients of RESP. The headers of a request may take 5 s and 16 KB,
// and the whole request 10 s. Only package api reads bodies, of 64 KB. At most --http-max-connections connections are open, and each takes
// 30 KB.
//
// The package knows neither sessions nor how a limit is computed: a check is a CL.TAKE (door.Door.Check), and package api turns JSON into
// calls and back.
package web
