// Package metrics declares each metric once, and renders it for INFO, Prometheus and the live page. It knows no sessions.
//
//	r := metrics.New(metrics.Section{Name: "Clients", ByDefault: true, Read: func(l *metrics.List) {
//		l.Gauge(metrics.Metric{Field: "connected_clients", Name: "celld_connections", JSON: "connections.open",
//			Help: "Connections of clients.", Value: n})
//	}})
//
// A metric is declared where its value is read, with its name in each rendering:
//
//	Field   INFO      Info("clients")   connected_clients:3
//	Name    /metrics  AppendText        celld_connections 3
//	JSON    the page  Fill              {"connections":{"open":3}}
//
// Counters only grow. Reset, which CONFIG RESETSTAT calls, moves the baseline from which INFO counts them, and leaves the other renderings.
// A test compares the tables in docs/ with the declarations.
package metrics
