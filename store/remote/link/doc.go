// Package link is the connection to an engine: a Redis or Valkey, alone, behind Sentinels or as a Cluster.
//
//	l := link.New(link.Options{URL: "redis://cache:6379", Timeout: time.Second})
//	err := l.Connect()                                          // an error for what no waiting mends
//	l.Send(&link.Request{Args: …, Keys: …, Done: func(answer rueidis.RedisMessage, err error) { … }})
//
// # What becomes of a request
//
//	Send ─▶ lane of its slot ─▶ pipeline ─▶ engine
//	        breaker, clock      answered or failed by its deadline
//
// A lane gathers requests while others are under way, and each of a Cluster's masters has lanes of its own. The breaker of a lane opens
// after failures in a row, or once a health probe is not answered; then only probes are sent, and each request is answered at once. An
// outage is over when all breakers have been closed for a while.
//
// What was sent is not sent again, unless the answer says that nothing was done. Errors are read in one place, Classify: a *DownError
// says that the engine has not decided, and whether it may have.
package link
