// Package client is the connections of clients as others see them: CLIENT LIST and KILL, MONITOR, the counts of INFO, and the server's
// loops over all connections.
//
//	var clients client.List
//	c := &session.client        // a session has one in it
//	c.From(remote, local, nowNS)
//	if clients.Admit(c, most) { // else there are most
//		clients.Open(c, conn, fd) // from now on others see it
//		...
//		clients.Forget(c)
//	}
//
// A client's session writes what changes in it, and any goroutine reads it. Nothing here knows what a session does. A
// goroutine that ends or wakes a client does so by its transport, which calls the session:
//
//	other ─▶ Kill, Push ─▶ transport.Conn ─▶ session, on its own goroutine
package client
