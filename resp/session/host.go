package session

import (
	"errors"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/store"
)

// host is a session as commands see it, and the connection of its client.
type host Session

func (h *host) session() *Session { return (*Session)(h) }

func (h *host) Keys() command.Keys        { return h.session().store() }
func (h *host) Inside() bool              { return h.tx.running }
func (h *host) Once(effect func())        { h.scratch.once(effect) }
func (h *host) Did(args, bytes int)       { h.scratch.slice.Did(args, bytes) }
func (h *host) CountDecisions()           { h.session().countDecisions() }
func (h *host) MostOutput() int           { return int(h.srv.Config.OutputBufferLimit.Get()) }
func (h *host) OverOutput(bytes int) bool { return h.session().overOutput(bytes) }

// Access is how the call reaches keys.
func (h *host) Access() store.Access {
	a := store.Access{NowNS: h.nowNS, Lane: h.scratch.lane, NoTouch: h.client.NoTouch.Load()}
	if h.gate.Has(gate.Rights) {
		a.May = h.client.User.Load().Rights().OnKey()
	}
	return a
}

// Alone calls do while no other connection's command runs. It may change the rights of its own user.
func (h *host) Alone(do func()) {
	if h.session().alone(do); h.client.ID != 0 {
		h.session().checkRights()
	}
}

// Connection is the client's, which has an id.
func (h *host) Connection() command.Connection {
	if h.client.ID == 0 {
		return nil
	}
	return h
}

// MayOffload reports whether the running command may have its work done by a goroutine: not in a transaction, nor in a script, nor for an
// engine, whose views belong to one session.
func (h *host) MayOffload() bool { return !h.tx.running && h.scratch.keyTx == nil }

// TypeOf is a key's type, as TYPE tells it.
func (h *host) TypeOf(key []byte, st store.Value) string {
	if v := h.scratch.keyTx; v != nil {
		if name, foreign := v.tx.Foreign(key); foreign {
			return name
		}
	}
	return st.Type()
}

// InSteps does a handler's work by step. In a transaction and in a script, all of it is done at once.
func (h *host) InSteps(step command.Step) {
	s := h.session()
	row := s.call.Row
	w := &stepwise{args: s.call.Args, step: func(s *Session, args [][]byte) (more bool) {
		s.call.Row, s.call.Args, s.call.NowNS = row, args, s.nowNS
		return step(s.call)
	}}
	if s.tx.running || s.scratch.keyTx != nil {
		for w.step(s, w.args) { //nolint:revive // it does all
		}
	} else if w.some(s) {
		s.waits = w
	}
}

// Shared calls do while no transaction or script runs alone.
func (h *host) Shared(a store.Access, do func()) {
	lane := h.srv.Execution.Lane(a.Lane)
	lane.RLock()
	defer lane.RUnlock()
	do()
}

// LeaseEnds notes when a lease that ends with the connection ends otherwise.
func (h *host) LeaseEnds(id, endNS int64) { h.bound.Ends(id, endNS) }

// ErrorText is the text of what the store has refused. A key to which a lease leads, and to which the user has no right, is refused
// and logged as one that the command names.
func (h *host) ErrorText(err error) string {
	if refused := (*store.NoRightError)(nil); errors.As(err, &refused) {
		return h.noteNoRight(refused)
	}
	return door.StoreText(err)
}

// noteNoRight logs a key that the command that runs does not name and may not reach. It returns the error.
func (h *host) noteNoRight(refused *store.NoRightError) (text string) {
	h.noteDenial(acl.DeniedKey, string(refused.Key), h.client.Command())
	if h.context() == "lua" {
		return errScriptNoKey
	}
	return door.ErrNoPermKey
}

// context is where a command comes from, in the words of ACL LOG.
func (h *host) context() string {
	switch {
	case h.srv.running.by(&h.client):
		return "lua"
	case h.tx.running || h.gate.Has(gate.Multi):
		return "multi"
	}
	return "toplevel"
}

// noteDenial logs what a user may not do.
func (h *host) noteDenial(reason acl.Reason, object, command string) {
	e := acl.Entry{Reason: reason, Context: h.context(), Object: object, Username: h.client.User.Load().Name()}
	h.Once(func() {
		e.AtNS = h.nowNS
		h.srv.LogDenial(&h.client, e)
		h.srv.LogOf(&h.client, door.RefusedCommand, "command", command, "reason", "the user may not use this "+string(reason))
	})
}

// The methods of command.Connection.

func (h *host) Client() *client.Client { return &h.client }
func (h *host) CloseAfterReply()       { h.end = afterReply }
func (h *host) MustAuth() bool         { return h.session().mustAuth() }
func (h *host) Caching() bool          { return h.gate.Has(gate.Caching) }
func (h *host) SkipReply()             { h.gate.Set(gate.SkipNext, !h.gate.Has(gate.ReplyOff)) }
func (h *host) SetCaching(on bool)     { h.gate.Set(gate.Caching, on) }

// SetRESP3 sets the protocol of this reply and the next ones.
func (h *host) SetRESP3(on bool) {
	h.call.RESP3 = on
	h.client.RESP3.Store(on)
}

// SetReplies says whether this command and the next ones get a reply.
func (h *host) SetReplies(on bool) {
	if h.gate.Set(gate.ReplyOff, !on); on {
		h.gate &^= gate.SkipNext | gate.Skip
	}
}

// Reset returns the connection to the state of a new one: RESP2, no transaction, no name, no bound leases, and the user default, not
// authenticated if that has a password.
func (h *host) Reset() {
	s, names := h.session(), h.client.Names()
	s.endTx()
	h.SetRESP3(false)
	s.becomeNobody()
	h.gate &^= gate.ReplyOff | gate.Caching // a RESET right after CLIENT REPLY SKIP still gets no reply, as in Redis
	h.client.NoTouch.Store(false)
	h.client.NoEvict.Store(false)
	h.client.SetNames(client.Names{LibName: names.LibName, LibVersion: names.LibVersion})
	h.srv.Clients.SetTracking(&h.client, 0)
	h.call.Out = append(h.call.Out, h.srv.Clients.SetMonitor(&h.client, false)...)
	s.bound.Release(&s.srv.Later)
}

// Authenticate makes a user the client's if the password is the user's. command is the name that AUTH or HELLO was called by.
func (h *host) Authenticate(command, name, password []byte) bool {
	s, srv := h.session(), h.srv
	u := srv.Users.Authenticate(name, password)
	if u == nil {
		srv.Stats.WrongPasswords.Add(1)
		tried := "" // what is no user's name may be a password in the wrong place
		if srv.Users.Get(string(name)) != nil {
			tried = string(name)
		}
		srv.LogOf(&h.client, door.WrongPassword, "tried", tried)
		e := acl.Entry{Reason: acl.DeniedAuth, Context: h.context(), Object: string(command), Username: string(name), AtNS: h.nowNS}
		srv.LogDenial(&h.client, e)
		return false
	}
	s.become(u)
	return true
}

func sessionOf(c *command.Call) *Session { return c.Host.(*host).session() }
