package resp

import (
	"celld/resp/acl"
	"celld/resp/client"
)

// The host of a client's calls is that client's connection, too.

func (h *host) Client() *client.Client { return &h.client }
func (h *host) CloseAfterReply()       { h.end = afterReply }
func (h *host) MustAuth() bool         { return h.session().mustAuth() }
func (h *host) Caching() bool          { return h.gate.has(gateCaching) }
func (h *host) SkipReply()             { h.gate.set(gateSkipNext, !h.gate.has(gateReplyOff)) }
func (h *host) SetCaching(on bool)     { h.gate.set(gateCaching, on) }

// SetRESP3 sets the protocol of this reply and the next ones.
func (h *host) SetRESP3(on bool) {
	h.call.RESP3 = on
	h.client.RESP3.Store(on)
}

// SetReplies says whether this command and the next ones get a reply.
func (h *host) SetReplies(on bool) {
	if h.gate.set(gateReplyOff, !on); on {
		h.gate &^= gateSkipNext | gateSkip
	}
}

// Reset returns the connection to the state of a new one: RESP2, no transaction, no name, no bound leases, and the user default, not
// authenticated if that has a password.
func (h *host) Reset() {
	s, names := h.session(), h.client.Names()
	s.endTx()
	h.SetRESP3(false)
	s.becomeNobody()
	h.gate &^= gateReplyOff | gateCaching // a RESET right after CLIENT REPLY SKIP still gets no reply, as in Redis
	h.client.NoTouch.Store(false)
	h.client.NoEvict.Store(false)
	h.client.SetNames(client.Names{LibName: names.LibName, LibVersion: names.LibVersion})
	h.srv.clients.SetTracking(&h.client, 0)
	h.call.Out = append(h.call.Out, h.srv.clients.SetMonitor(&h.client, false)...)
	s.releaseBound()
}

// Authenticate makes a user the client's if the password is the user's. command is the name that AUTH or HELLO was called by.
func (h *host) Authenticate(command, name, password []byte) bool {
	s, srv := h.session(), h.srv
	u := srv.users.Authenticate(name, password)
	if u == nil {
		srv.stats.WrongPasswords.Add(1)
		tried := "" // what is no user's name may be a password in the wrong place
		if srv.users.Get(string(name)) != nil {
			tried = string(name)
		}
		srv.tellOf(&h.client, tellPassword, "tried", tried)
		srv.logDenial(&h.client, acl.Entry{Reason: acl.DeniedAuth, Context: s.context(), Object: string(command), Username: string(name), AtNS: h.nowNS})
		return false
	}
	s.become(u)
	return true
}
