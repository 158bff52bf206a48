// Package web serves HTTP beside RESP: health for orchestrators, decisions for proxies, metrics for Prometheus, and a page for people.
//
//	server := resp.NewServer(…)
//	err := web.Serve(server, cfg.HTTPOptions(), log) // until the server stops
//
// HTTP has its own listener and limits, so its traffic does not touch clients of RESP. The headers of a request may take 5 s and 16 KB,
// and the whole request 10 s. Bodies are not read. At most --http-max-connections connections are open, and each takes 30 KB.
//
// Package resp alone knows limits: a check is a CL.TAKE (resp.Server.Check).
package web
