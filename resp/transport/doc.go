// Package transport carries the bytes of connections between sockets and sessions. It knows no protocol: a Session is given what has
// arrived, in whatever pieces, and sends replies by its Conn.
//
//	t, err := transport.New(server, transport.Options{Loops: 2})
//	ln, err := transport.ListenTCP("127.0.0.1", 6379)
//	t.Accept(ctx, transport.Listener{Listener: ln}) // until ln is closed
//	t.Stop()
//
// # Two ways to carry
//
// On Linux, event loops on epoll carry TCP and unix sockets: each is one goroutine, and an idle connection costs it nothing but its
// struct. On other systems each connection has a goroutine.
//
// A TLS handshake has a goroutine everywhere, as it computes for 1 ms. Then the connection is carried as any other.
//
// # Rounds
//
// A loop answers all connections that have something to read before it writes to any. That is a round; of a goroutine it is what one
// read has brought. Where replies wait for the disk (Options.Sync) a round is between Server.Begin and Server.Commit, and no
// reply of it leaves before Session.Confirm has seen whether that succeeded.
//
// # Where a reply waits for the disk
//
// With appendfsync always, a round is serve, commit, send: epollLoop.run in epoll.go.
//
//  1. serve: handlers change the store, whose journal notes the keys (store/memory/shard/journal.go). round.wrote in resp/session/commit.go
//     marks the replies to writes.
//  2. commit: committer.letGo in epollcommit.go sends the replies of sessions that have written nothing. Then Disk.Commit in
//     persistence/commit.go drains the journal, writes it and calls fdatasync. Rounds of other loops share that write.
//  3. Session.Confirm gets the result. After an error it replaces the marked replies by -MISCONF. Until the disk takes writes again,
//     inFlight.perform in resp/session/dispatch.go refuses them before they run.
//  4. send: epollConn.flush in epollconn.go writes to the socket.
//
// When a loop has stood in Commit for 25 to 50 ms, epollLoop.takeOver in epollcommit.go gives it to another goroutine. That one serves all
// connections except those of the round that is being written.
//
// With everysec, replies leave at once, and appendLog.tick in persistence/aof.go writes the journal twice a second.
//
// # The life of a connection
//
//	fresh ─▶ open ─▶ closing ─▶ cut ─▶ gone
//
// A connection's phase only goes up, and may skip some. While it is closing, its peer still gets all replies; it ends early if
// the peer reads nothing for 10 s. Once it is cut, nothing more is sent. When it is gone, Session.Closed has been called.
//
// # Memory
//
// For each connection the transport holds at most one read (64 KB, with a goroutine 8 KB), with TLS what has come of a record
// (18 KB) or of a message of TLS itself (64 KB), and the replies that the peer has not taken.
// The session bounds the replies by Send's result. All other input waits in the socket, and then at the peer.
package transport
