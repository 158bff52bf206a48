package command

import "celld/resp/client"

// Connection is the part of its client's connection that a command may know and change.
type Connection interface {
	// Client is the connection as others see it.
	Client() *client.Client

	// CloseAfterReply closes the connection when the replies have been sent.
	CloseAfterReply()

	// Reset returns the connection to the state of a new one.
	Reset()

	// MustAuth reports whether the client has to authenticate first.
	MustAuth() bool

	// Authenticate makes a user the client's if the password is the user's. command is the name that AUTH or HELLO was called by.
	Authenticate(command, name, password []byte) bool

	// SetRESP3 sets the protocol of this reply and the next ones.
	SetRESP3(on bool)

	// SetReplies says whether this command and the next ones get a reply. SkipReply drops the reply to the next one.
	SetReplies(on bool)
	SkipReply()

	// Caching reports whether CLIENT CACHING holds for the next command or transaction. SetCaching sets that.
	Caching() bool
	SetCaching(on bool)
}

// OnConnection is the handler of a command about its client's connection. A call from within the process has none, and is answered with
// an error.
func OnConnection(run func(*Call, Connection)) func(*Call) {
	return func(c *Call) {
		if own := c.Connection(); own != nil {
			run(c, own)
		} else {
			c.Error(ErrNoConnection)
		}
	}
}
