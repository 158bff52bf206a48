package resp

// Transport carries the bytes of one connection. A session calls it, and is called by it: Serve with what arrived, from
// one goroutine at a time, and Close once when the connection is gone.
type Transport interface {
	// Send takes reply bytes for the peer without blocking; p may be reused when it returns. It returns how many bytes
	// the peer has not yet taken.
	Send(p []byte) (pending int)
	// Close ends the connection, after what was sent has left or a short while has passed, or now. From any goroutine.
	Close(now bool)
	// Wake has Serve called soon with no bytes, for output that came about elsewhere. From any goroutine.
	Wake()
	// Meanwhile serves other connections where Serve keeps them from it: a command has been running for long, and asks for it
	// every now and then. Where it has changed nothing (wrote), it is taken out of the round that waits for the disk, until
	// Resume.
	Meanwhile(wrote bool)
	// Resume goes on with that round, before the command changes something, and at its end.
	Resume()
}
