// Package resp is the server: it listens, loads the files, serves sessions, does the regular work, reloads, and stops.
//
//	cfg := config.New()
//	server := resp.NewServer(resp.Options{Config: cfg, Store: memory.New(memory.Options{})})
//	listeners, err := server.Listen()
//	err = server.Serve(ctx, listeners, ready) // until ctx ends, or a client asks for SHUTDOWN
//
// It knows neither how a limit is computed nor how commands are run. The packages below it stand in the order of a request's way:
//
//	transport ─▶ session ─▶ command/… ─▶ store's port ─▶ reply
//	     bytes    frames      a handler
//
// Package transport carries bytes between sockets and sessions, package wire reads and writes the protocol, and package session answers
// commands. This package has what a server does beside that, by file: serve.go and loading.go from the start to the first answer,
// cron.go and wall.go every 100 ms, settings.go for CONFIG SET, reload.Reloader for SIGHUP, ready.go for probes, info.go and overview.go
// for those who look, shutdown.go for the end.
//
// # Panics
//
// What a panic in a command costs is in package session's documentation. Elsewhere:
//
//   - In reading, writing, accepting or closing a connection: that connection is closed.
//   - In the cron: the rest of that tick is left out.
//   - In a snapshot or a rewrite: that file has failed, as if the disk were full.
//   - In loading: the start has failed.
//
// The process ends with one line in the log and exit code 1 after a panic in an event loop between connections, and when epoll_wait fails,
// as nobody would serve what the loop carries. Go itself ends it when memory runs out.
//
// Out of file descriptors, the server waits for some to come free. A connection that epoll does not take is closed, and counted
// (rejected_connections).
//
// # How the server stops
//
//  1. main.go gets the signal. Server.AwaitStop in shutdown.go waits for --shutdown-delay, a second signal, or SHUTDOWN.
//  2. The context ends, and Server.serve in serve.go goes on: it closes the listeners, and Server.drain in shutdown.go waits until all that
//     has arrived is answered, for --shutdown-timeout at most. SHUTDOWN (resp/command/admin/server.go) joins here.
//  3. It stops the cron, and the transport closes all connections. Server.drainLimiter in shutdown.go waits until what they held is given
//     back, with an engine by Store.Drain in store/remote/leases.go.
//  4. Server.closeFiles in shutdown.go calls Disk.Close in persistence/disk.go, which writes what is left, and takes a snapshot where
//     --save is set.
package resp
