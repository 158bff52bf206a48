// Package session turns the bytes of connections into commands, runs these, and returns the bytes of their replies.
//
//	sessions := session.New(session.Parts{Config: cfg, Clock: clock, Log: log, Store: keys, Persist: disk, Stats: stats})
//	carrier, err := transport.New(sessions.Carried(), transport.Options{}) // calls what follows, for each connection
//
//	s, refusal := sessions.NewSession(remote, local)
//	s.Open(conn, fd)        // others see it
//	more := s.Serve(bytes)  // in whatever pieces they come; the replies go to conn
//	s.Closed()
//
// A Session is the state machine of one connection and does no I/O. So the tests and fuzzers drive sessions by hand, in a time that they
// set. A Service is what all sessions share: keys, users, counters, the disk. The HTTP port asks it by Take, without a session.
//
// # The way of a request
//
//	bytes ─▶ session.go ─▶ wire ─▶ dispatch.go ─▶ a family below command ─▶ command.Reply, wire ─▶ bytes
//	         (Serve)    (arguments)  (the row)      (its handler)
//	            └─▶ batch.go, command/decide: calls of a pipeline are decided together, and parsed once for each shape
//
// The clock is read once a batch, which is what one read from a connection brought. Replies are gathered and sent together at its end.
// While a batch runs it holds the execution lock shared; EXEC and scripts take it alone.
//
// A session that has to wait is paused: for the limiter (batch.go), for an engine or a goroutine (keytx.go), or for its next turn
// in the middle of a long command (steps.go). Each of these is a suspension: see session.go.
//
// # The command table
//
// table.go lists the families of commands. A command is one row and one handler in its family's package. Its arity, keys, flags and
// usage in that row are what COMMAND, COMMAND DOCS, HELP, redis-cli's hints, arity errors and transactions know of it. Those that begin,
// end and run transactions and scripts are sessions' own, in transaction.go and scripting.go.
//
// # Limits
//
// Nothing a peer sends makes the server hold more than its limits say. An argument's length and number are checked before room is made
// for them. An unfinished command and a transaction's queue count against client-query-buffer-limit. Replies that are not read, or that
// one command gathers, count against client-output-buffer-limit.
// An unfinished command is one whose end has not arrived. Whole commands that wait for their turn do not count: a transport reads
// no more from a connection while some of what it has read is unserved, so the rest waits in the socket, and then at the peer.
//
// # Panics
//
// A panic is a fault in this program, and costs no more than it may have broken. It is logged with its stack and counted
// (handler_panics). In a command, it closes the connection: the commands before it are answered, and it is answered by an error.
// A panic in store, cell or persistence, or in a function that they call, ends the process with one line in the log and exit code 1:
// a shard may be locked or half changed, and the append-only file may lack something.
package session
