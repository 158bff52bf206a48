// Package resp is the wire: it reads commands in Redis's protocol, answers them from a store, and carries the bytes.
//
//	cfg := resp.NewConfig()
//	server := resp.NewServer(resp.Options{Config: cfg, Store: store.New(store.Options{})})
//	listeners, err := server.Listen()
//	err = server.Serve(ctx, listeners) // until ctx ends
//
// # The way of a request
//
//	bytes ─▶ epoll.go ─▶ session.go ─▶ frame.go ─▶ table.go, commands.go ─▶ cmd_*.go ─▶ reply.go ─▶ bytes
//	        (transport)  (Serve)     (arguments)   (the command's row)     (handler)
//	                         └─▶ throttle_batch.go: the short way of CL.THROTTLE in a pipeline
//
// A Session is the state machine of one connection and does no I/O: a Transport hands it what has arrived, in whatever
// pieces, and takes the replies. So the tests and fuzzers drive sessions by hand, in a time that they set.
//
// The clock is read once a batch, which is what one read from a connection brought. Replies are gathered and sent
// together at its end. While a batch runs it holds the server's world shared; EXEC takes it alone.
//
// # The command table
//
// A command is one row in commands.go and one handler. Its arity, keys, flags and usage in that row are what COMMAND,
// COMMAND DOCS, HELP, redis-cli's hints, arity errors and transactions know of it. What clients can be told as an
// error is all in errors.go.
//
// # Limits
//
// Nothing a peer sends makes the server hold more than its limits say: an argument's length and number are checked before
// room is made for them, an unfinished command and a transaction's queue count against client-query-buffer-limit, replies
// that are not read, or that one command gathers, against client-output-buffer-limit.
package resp
