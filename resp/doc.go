// Package resp answers commands in Redis's protocol from a store. Package wire reads and writes the protocol, and package transport
// carries the bytes.
//
//	cfg := config.New()
//	server := resp.NewServer(resp.Options{Config: cfg, Store: memory.New(memory.Options{})})
//	listeners, err := server.Listen()
//	err = server.Serve(ctx, listeners) // until ctx ends
//
// # The way of a request
//
//	bytes ─▶ transport ─▶ session.go ─▶ wire ─▶ dispatch.go ─▶ a family below command ─▶ command.Reply, wire ─▶ bytes
//	                      (Serve)   (arguments)  (the row)      (its handler)
//	                         └─▶ command/decide: calls of a pipeline are decided together, and parsed once for each shape
//
// A Session is the state machine of one connection and does no I/O: its transport hands it what has arrived, in whatever
// pieces, and takes the replies. So the tests and fuzzers drive sessions by hand, in a time that they set.
//
// The clock is read once a batch, which is what one read from a connection brought. Replies are gathered and sent
// together at its end. While a batch runs it holds the server's execution lock shared; EXEC takes it alone.
//
// # The command table
//
// commands.go lists the families of commands. A command is one row and one handler in its family's package. Its arity, keys, flags and
// usage in that row are what COMMAND, COMMAND DOCS, HELP, redis-cli's hints, arity errors and transactions know of it. Those that begin,
// end and run transactions and scripts are sessions' own, in transaction.go and scripting.go.
//
// # Limits
//
// Nothing a peer sends makes the server hold more than its limits say: an argument's length and number are checked before
// room is made for them, an unfinished command and a transaction's queue count against client-query-buffer-limit, replies
// that are not read, or that one command gathers, against client-output-buffer-limit.
// An unfinished command is one whose end has not arrived. Whole commands that wait for their turn do not count: a transport reads
// no more from a connection while some of what it has read is unserved, so the rest waits in the socket, and then at the peer.
//
// # Panics
//
// A panic is a fault in this program, and costs no more than it may have broken. It is logged with its stack, and these are
// counted (handler_panics):
//
//   - In a command: its connection is closed. The commands before it are answered, and it is answered by an error.
//   - In reading, writing, accepting or closing a connection: that connection is closed.
//   - In the cron: the rest of that tick is left out.
//
// In a snapshot or a rewrite, that file has failed, as if the disk were full. In loading, the start has failed.
//
// Anywhere else the process ends with one line in the log and exit code 1: in store, cell and persistence, or in a function that
// they call, as a shard may be locked or half changed, and the append-only file may lack something; in an event loop between
// connections; or when epoll_wait fails, as nobody would serve what the loop carries. Go itself ends it when memory runs out.
//
// Out of file descriptors, the server waits for some to come free. A connection that epoll does not take is closed, and counted
// (rejected_connections).
package resp
