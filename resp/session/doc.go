// Package session turns the bytes of connections into commands, runs these, and returns the bytes of their replies.
//
//	sessions := session.New(session.Parts{Parts: door.Parts{Config: cfg, Clock: clock, Store: keys, Persist: disk, …}})
//	carrier, err := transport.New(sessions.Carried(), transport.Options{}) // calls what follows, for each connection
//
//	s, refusal := sessions.NewSession(remote, local)
//	s.Open(conn, fd)        // others see it
//	more := s.Serve(bytes)  // in whatever pieces they come; the replies go to conn
//	s.Closed()
//
// A Session is the state machine of one connection. It knows neither sockets nor how a limit is computed, and does no I/O: tests and
// fuzzers drive sessions by hand, in a time that they set. A Service is what all sessions share: a door.Door, and what only RESP needs.
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
// A session that has to wait is paused: for the limiter (batch.go), for the keys of an engine (keytx.go), for work that a goroutine or an
// engine does (elsewhere.go), or for its next turn in the middle of a long command (steps.go). Each of these is a suspension: see
// session.go.
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
// A panic in a command closes its connection: the commands before it are answered, and it is answered by an error. See package door.
//
// # How a call waits
//
//  1. readTake in resp/command/decide/take.go reads the options into the Terms of store/terms.go, and batch.ask in batch.go asks the store.
//  2. takes.TakeBatch in store/memory/takebatch.go finds that the call is denied now and passes soon enough. It puts the call into the line
//     of the state that binds (store/memory/shard/line.go), and returns false. Nothing is taken.
//  3. batch.suspend in batch.go keeps the batch and pauses the connection. The event loop serves others.
//  4. When the moment of the line's first call has come, or when something was given back, the line's timer decides that call as any other.
//     The answer goes into its request, and batch.Wake in batch.go wakes the connection.
//  5. The transport calls Serve. Session.resume in session.go writes the reply, and then what came behind it.
//
// Whoever ends a wait early (the session's end, CLIENT UNBLOCK, SIGTERM) calls takes.Leave in store/memory/leaving.go. If the grant was
// quicker, batch.giveBack in batch.go gives it back.
//
// # Why a connection was closed
//
// What the client or INFO shows, the cause, and the place. All except the first, the third and the last end in Session.Serve, which looks
// at Session.end.
//
//   - -ERR max number of clients reached (rejected_connections), -DENIED (denied_connections): it was refused by Service.NewSession in
//     admit.go, which resp/transport/accept.go calls
//   - -ERR Protocol error (protocol_errors): bytes that are not RESP, by Session.run in session.go. The texts are in resp/wire/frame.go
//   - tls_handshake_failures: a handshake that failed, took 10 s, or was the oldest of too many, by handshake.succeeds in
//     resp/transport/handshake.go
//   - no reply: an HTTP request, by isHTTP in dispatch.go
//   - client_query_buffer_limit_disconnections: an unfinished command or a transaction's queue was too long, by Session.keep in session.go
//   - client_output_buffer_limit_disconnections: the client did not read its replies, by Session.answerTurn in session.go, or one reply was
//     too long, by Session.overOutput in session.go
//   - idle_disconnections: --timeout, by Session.Overdue in session.go, which resp/cron.go wakes
//   - -ERR internal error (handler_panics): a fault in celld, by Session.broken in session.go
//   - none of these: QUIT, CLIENT KILL, ACL DELUSER or SHUTDOWN, in families of resp/command
//   - none of these: the peer has gone, or a write failed, by epollConn.read and epollConn.flush in resp/transport/epollconn.go
package session
