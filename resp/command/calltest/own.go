package calltest

import (
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/transport"
)

// Own is the connection of whoever calls. It notes what commands do to it.
type Own struct {
	Seen   client.Client
	Users  *acl.Users // who may authenticate
	Locked bool       // it must
	Closed bool       // after the reply
	Killed bool       // by others
	Resets int
	Silent bool // it gets no replies
	Skips  int  // how often it gets no reply to its next command
	Cached bool // CLIENT CACHING holds

	host *Host
}

// Connect returns the host's connection, which is open and whose user is the default.
func (h *Host) Connect(clients *client.List, users *acl.Users) *Own {
	o := &Own{Users: users, host: h}
	o.Seen.Begin("127.0.0.1:4711", "127.0.0.1:6379", h.NowNS)
	o.Seen.User.Store(users.Default)
	clients.Admit(&o.Seen, 1<<30)
	clients.Open(&o.Seen, conn{of: o}, 7)
	h.Own = o
	return o
}

// conn is the transport's side.
type conn struct {
	transport.Conn
	of *Own
}

func (c conn) Close(now bool) { c.of.Killed = now }
func (c conn) Hold() func()   { return func() {} }

// The methods of command.Connection.

func (o *Own) CloseAfterReply()   { o.Closed = true }
func (o *Own) Reset()             { o.Resets++ }
func (o *Own) MustAuth() bool     { return o.Locked }
func (o *Own) SetReplies(on bool) { o.Silent = !on }
func (o *Own) SkipReply()         { o.Skips++ }
func (o *Own) Caching() bool      { return o.Cached }
func (o *Own) SetCaching(on bool) { o.Cached = on }

// Client is the connection as others see it.
func (o *Own) Client() *client.Client { return &o.Seen }

// SetRESP3 sets the protocol of this reply and the next ones.
func (o *Own) SetRESP3(on bool) { o.host.RESP3, o.host.call.RESP3 = on, on }

// Authenticate makes a user the client's.
func (o *Own) Authenticate(_, name, password []byte) bool {
	u := o.Users.Authenticate(name, password)
	if u != nil {
		o.Seen.User.Store(u)
		o.Locked = false
	}
	return u != nil
}
