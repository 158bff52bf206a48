package resp

import (
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
)

// own is a session as the commands about its client see it.
type own Session

func (s *Session) own() *own { return (*own)(s) }

func (o *own) Client() *client.Client { return &o.client }
func (o *own) CloseAfterReply()       { o.end = afterReply }
func (o *own) MustAuth() bool         { return (*Session)(o).mustAuth() }
func (o *own) Caching() bool          { return o.gate.has(gateCaching) }
func (o *own) SetCaching(on bool)     { o.gate.set(gateCaching, on) }

// SetRESP3 sets the protocol of this reply and the next ones.
func (o *own) SetRESP3(on bool) {
	o.call.RESP3 = on
	o.client.RESP3.Store(on)
}

// SetReplies says which commands get a reply.
func (o *own) SetReplies(to command.Replies) {
	switch to {
	case command.ToAll:
		o.gate &^= gateReplyOff | gateSkipNext | gateSkip
	case command.ToNone:
		o.gate.set(gateReplyOff, true)
	case command.ToAllButNext:
		o.gate.set(gateSkipNext, !o.gate.has(gateReplyOff))
	}
}

// Reset returns the connection to the state of a new one: RESP2, no transaction, no name, no bound leases, and the user default, not
// authenticated if that has a password.
func (o *own) Reset() {
	s := (*Session)(o)
	s.endTx()
	o.SetRESP3(false)
	s.becomeNobody()
	o.gate &^= gateReplyOff | gateCaching // a RESET right after CLIENT REPLY SKIP still gets no reply, as in Redis
	o.client.NoTouch.Store(false)
	o.client.NoEvict.Store(false)
	o.client.SetName(nil)
	o.srv.clients.SetTracking(&o.client, 0)
	o.call.Out = append(o.call.Out, o.srv.clients.SetMonitor(&o.client, false)...)
	s.releaseBound()
}

// Authenticate makes a user the client's if the password is the user's. command is the name that AUTH or HELLO was called by.
func (o *own) Authenticate(command, name, password []byte) bool {
	s, srv := (*Session)(o), o.srv
	u := srv.users.Authenticate(name, password)
	if u == nil {
		srv.stats.WrongPasswords.Add(1)
		tried := "" // what is no user's name may be a password in the wrong place
		if srv.users.Get(string(name)) != nil {
			tried = string(name)
		}
		srv.tellOf(&o.client, tellPassword, "tried", tried)
		srv.logDenial(&o.client, acl.Entry{Reason: acl.DeniedAuth, Context: s.context(), Object: string(command), Username: string(name), AtNS: o.nowNS})
		return false
	}
	s.become(u)
	return true
}
