// Package web serves HTTP beside RESP: health for orchestrators, decisions for proxies, metrics for Prometheus, and a page for people.
//
//	server := resp.NewServer(…)
//	err := web.Serve(server, cfg.HTTPOptions(), log) // until the server stops
//
// It has a listener and limits of its own, so that its traffic does not touch clients of RESP: a connection has 5 s and 16 KB for
// the headers of a request and 10 s for all of it; bodies are not read; there are --http-max-connections connections at most. A
// connection takes 30 KB.
//
// Package resp alone knows limits: a check is a CL.TAKE (resp.Server.Check).
package web
