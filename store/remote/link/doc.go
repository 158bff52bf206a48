// Package link connects to an engine, and sends requests to it: a Redis or Valkey, alone, behind Sentinels or as a Cluster. It knows
// neither limits nor policies.
//
//	l := link.New(link.Options{URL: "redis://cache:6379", Timeout: time.Second})
//	err := l.Connect()                                          // an error for what no waiting mends
//	l.Send(&link.Request{Args: …, Keys: …, Done: func(answer rueidis.RedisMessage, err error) { … }})
//
// # What becomes of a request
//
//	Send ─▶ pipeline of its hash slot ─▶ round trip ─▶ engine
//	        breaker, clock               answered or failed by its deadline
//
// A pipeline gathers requests while others are under way. Each of a Cluster's masters has pipelines of its own. The breaker of a pipeline
// opens after failures in a row, or once a health probe is not answered. Then only probes are sent, and each request is answered at once.
// An outage is over when all breakers have been closed for a while.
//
// A request is not sent again, unless the answer says that nothing was done. Classify alone reads errors: a *DownError says that the engine
// has not decided, or that nobody knows whether it has.
package link
