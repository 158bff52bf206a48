package resp

import (
	"bytes"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/store"
)

func clientRows() []*command.Row {
	return []*command.Row{
		{Name: "id", Arity: 2, Flags: command.NoScript | command.Fast, Summary: "Returns the connection's id.", Since: "5.0.0", Group: "connection", Run: onSession(cmdClientID)},
		{Name: "info", Arity: 2, Flags: command.NoScript, Summary: "Returns information about the connection.", Since: "6.2.0", Group: "connection", Run: onSession(cmdClientInfo)},
		{Name: "list", Arity: -2, Many: true, Flags: command.NoScript | command.Admin, Usage: "[TYPE normal|master|replica|pubsub] [ID client-id ...]", Summary: "Lists open connections.", Since: "2.4.0", Group: "connection", Cost: "O(N) where N is the number of connections", Run: onSession(cmdClientList)},
		{Name: "kill", Arity: -3, Most: command.ShortList, Flags: command.NoScript | command.Admin, Usage: "addr|[ID client-id] [TYPE normal|master|replica|pubsub] [USER username] [ADDR addr] [LADDR addr] [SKIPME yes|no] [MAXAGE seconds]", Summary: "Closes connections.", Since: "2.4.0", Group: "connection", Cost: "O(N) where N is the number of connections", Run: onSession(cmdClientKill)},
		{Name: "unblock", Arity: -3, Flags: command.NoScript | command.Admin, Usage: "client-id [TIMEOUT|ERROR]", Summary: "Ends the wait of a connection's CL.TAKE: as if the time was over, or with an error.", Since: "5.0.0", Group: "connection", Run: onSession(cmdClientUnblock)},
		{Name: "getname", Arity: 2, Flags: command.NoScript | command.Fast, Summary: "Returns the connection's name.", Since: "2.6.9", Group: "connection", Run: onSession(cmdClientGetName)},
		{Name: "setname", Arity: 3, Flags: command.NoScript | command.Fast, Usage: "name", Summary: "Sets the connection's name.", Since: "2.6.9", Group: "connection", Run: onSession(cmdClientSetName)},
		{Name: "setinfo", Arity: 4, Flags: command.NoScript | command.Fast, Usage: "LIB-NAME|LIB-VER value", Summary: "Sets the name or version of the client's library.", Since: "7.2.0", Group: "connection", Run: onSession(cmdClientSetInfo)},
		{Name: "no-evict", Arity: 3, Flags: command.NoScript | command.Admin, Usage: "ON|OFF", Summary: "Sets the connection's no-evict mode. Clients are never evicted here.", Since: "7.0.0", Group: "connection", Run: onSession(cmdClientNoEvict)},
		{Name: "no-touch", Arity: 3, Flags: command.NoScript | command.Fast, Usage: "ON|OFF", Summary: "Sets whether the connection's commands leave the order in which keys were used unchanged.", Since: "7.2.0", Group: "connection", Run: onSession(cmdClientNoTouch)},
		{Name: "reply", Arity: 3, Flags: command.NoScript, Usage: "ON|OFF|SKIP", Summary: "Instructs the server whether to reply to commands.", Since: "3.2.0", Group: "connection", Run: onSession(cmdClientReply)},
		{Name: "tracking", Arity: -3, Flags: command.Fast | command.NoScript, Usage: "ON|OFF [OPTIN]", Summary: "Sets whether the connection is told that the keys it reads have changed. celld tells it at once.", Since: "6.0.0", Group: "connection", Run: onSession(cmdClientTracking)},
		{Name: "caching", Arity: 3, Flags: command.Fast | command.NoScript, Usage: "YES|NO", Summary: "Sets whether the next command or transaction is tracked.", Since: "6.0.0", Group: "connection", Run: onSession(cmdClientCaching)},
		{Name: "trackinginfo", Arity: 2, Flags: command.Fast | command.NoScript, Summary: "Returns how the connection tracks.", Since: "6.2.0", Group: "connection", Run: onSession(cmdClientTrackingInfo)},
		{Name: "getredir", Arity: 2, Flags: command.Fast | command.NoScript, Summary: "Returns the id of the client that is told of changed keys: 0 for the connection itself, -1 for none.", Since: "6.0.0", Group: "connection", Run: onSession(cmdClientGetRedir)},
	}
}

func cmdClientID(s *Session, _ [][]byte) { s.call.Int(s.client.id) }

func cmdClientInfo(s *Session, _ [][]byte) {
	s.call.Text(s.client.line(s.nowNS) + "\n")
}

// manyClients take longer than a millisecond to list. So do some more ids to read.
const manyClients = 500

func cmdClientList(s *Session, args [][]byte) {
	if max(s.srv.clients.count(), len(args)) < manyClients || !s.mayGoAside() {
		s.srv.listClients(s.call)
		return
	}
	s.call.List(s.srv.listClients)
}

func (srv *service) listClients(c *command.Call) {
	var ids map[int64]bool
	kind := ""
	switch rest := c.Args[2:]; {
	case len(rest) == 0:
	case len(rest) == 2 && bytes.EqualFold(rest[0], []byte("TYPE")):
		kind = clientType(rest[1])
		if kind == "" {
			c.Error(errClientType, rest[1])
			return
		}
	case len(rest) > 1 && bytes.EqualFold(rest[0], []byte("ID")):
		ids = map[int64]bool{}
		for _, arg := range rest[1:] {
			id, ok := command.ParseInt(arg)
			if !ok {
				c.Error(errClientID)
				return
			}
			ids[id] = true
		}
	default:
		c.Error(errSyntax)
		return
	}
	var list []byte
	for _, other := range srv.clients.byAge() {
		of := &other.client
		if ids != nil && !ids[of.id] || kind != "" && kind != clientKind {
			continue
		}
		list = append(append(list, of.line(c.NowNS)...), '\n')
		if c.OverOutput(len(list)) {
			return
		}
	}
	c.Text(string(list))
}

// clientKind is the type of every client.
const clientKind = "normal"

// clientType reads a type as CLIENT LIST and KILL name it. "slave" is the old word for a replica. It returns "" for an unknown one.
func clientType(name []byte) string {
	switch word := strings.ToLower(string(name)); word {
	case "normal", "master", "replica", "pubsub":
		return word
	case "slave":
		return "replica"
	}
	return ""
}

// killFilter selects the clients that CLIENT KILL closes. A field that is nil or zero matches every client.
type killFilter struct {
	id, maxAge      int64 // positive if given; maxAge in seconds
	addr, localAddr []byte
	kind            string
	user            *acl.User
	skipMe          bool
}

func (f *killFilter) matches(c *client, nowNS int64) bool {
	return (f.id == 0 || f.id == c.id) && (f.addr == nil || string(f.addr) == c.addr) && (f.localAddr == nil || string(f.localAddr) == c.localAddr) &&
		(f.kind == "" || f.kind == clientKind) && (f.user == nil || f.user == c.user.Load()) && (f.maxAge == 0 || (nowNS-c.bornNS)/1e9 >= f.maxAge)
}

func cmdClientKill(s *Session, args [][]byte) {
	oldForm := len(args) == 3
	filter := killFilter{skipMe: true}
	if oldForm {
		filter = killFilter{addr: args[2]}
	} else if text := filter.parse(args[2:], s.srv.users); text != "" {
		s.call.Error("%s", text)
		return
	}
	killed := int64(0)
	for _, other := range s.srv.clients.all() {
		if filter.skipMe && other == s || !filter.matches(&other.client, s.nowNS) {
			continue
		}
		killed++
		if other == s {
			s.end = afterReply
			continue
		}
		other.kill()
	}
	switch {
	case !oldForm:
		s.call.Int(killed)
	case killed == 0:
		s.call.Error(errNoSuchClient)
	default:
		s.call.OK()
	}
}

// parse reads CLIENT KILL's filters. It returns the text of an error, or "".
func (f *killFilter) parse(args [][]byte, users *acl.Users) string {
	if len(args)%2 != 0 {
		return errSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		value := args[1]
		switch strings.ToLower(string(args[0])) {
		case "id":
			id, ok := command.ParseInt(value)
			if !ok || id <= 0 {
				return errClientIDRange
			}
			f.id = id
		case "maxage":
			age, ok := command.ParseInt(value)
			if !ok || age <= 0 {
				return errNotInteger
			}
			f.maxAge = age
		case "type":
			if f.kind = clientType(value); f.kind == "" {
				return formatError(errClientType, value)
			}
		case "user":
			if f.user = users.Get(string(value)); f.user == nil {
				return formatError(errClientUser, value)
			}
		case "addr":
			f.addr = value
		case "laddr":
			f.localAddr = value
		case "skipme":
			switch strings.ToLower(string(value)) {
			case "yes":
				f.skipMe = true
			case "no":
				f.skipMe = false
			default:
				return errSyntax
			}
		default:
			return errSyntax
		}
	}
	return ""
}

// cmdClientUnblock is CLIENT UNBLOCK client-id [TIMEOUT|ERROR].
func cmdClientUnblock(s *Session, args [][]byte) {
	why := store.ErrRefused
	if len(args) > 4 {
		s.call.Error(errUnblockArgs, args[1])
		return
	}
	if len(args) == 4 {
		switch strings.ToLower(string(args[3])) {
		case "timeout":
		case "error":
			why = store.ErrUnblocked
		default:
			s.call.Error(errUnblockReason)
			return
		}
	}
	id, ok := command.ParseInt(args[2])
	if !ok {
		s.call.Error(errNotInteger)
		return
	}
	other := s.srv.clients.get(id)
	s.call.Bool(other != nil && other.unblock(why))
}

// kill ends the session. Any goroutine may call it.
func (s *Session) kill() {
	s.client.killed.Store(true)
	s.tr.Close(true)
}

func cmdClientGetName(s *Session, _ [][]byte) {
	s.client.mu.Lock()
	name := s.client.name
	s.client.mu.Unlock()
	if name == "" {
		s.call.Null()
	} else {
		s.call.String(name)
	}
}

func cmdClientSetName(s *Session, args [][]byte) {
	if text := nameProblem(args[2]); text != "" {
		s.call.Error("%s", text)
		return
	}
	s.client.setName(string(args[2]))
	s.call.OK()
}

func cmdClientSetInfo(s *Session, args [][]byte) {
	field := &s.client.libName
	option := strings.ToLower(string(args[2]))
	switch option {
	case "lib-name":
	case "lib-ver":
		field = &s.client.libVersion
	default:
		s.call.Error(errClientOption, args[2])
		return
	}
	switch {
	case len(args[3]) > maxClientName:
		s.call.Error(errClientLibLong, option, maxClientName)
		return
	case !validName(args[3]):
		s.call.Error(errClientLibInfo, option)
		return
	}
	s.client.mu.Lock()
	*field = string(args[3])
	s.client.mu.Unlock()
	s.call.OK()
}

// onOff reads ON or OFF, and answers anything else with a syntax error.
func (s *Session) onOff(arg []byte) (on, ok bool) {
	switch strings.ToLower(string(arg)) {
	case "on":
		return true, true
	case "off":
		return false, true
	}
	s.call.Error(errSyntax)
	return false, false
}

func cmdClientNoEvict(s *Session, args [][]byte) {
	if on, ok := s.onOff(args[2]); ok {
		s.client.noEvict.Store(on)
		s.call.OK()
	}
}

func cmdClientNoTouch(s *Session, args [][]byte) {
	if on, ok := s.onOff(args[2]); ok {
		s.setNoTouch(on)
		s.call.OK()
	}
}

func cmdClientReply(s *Session, args [][]byte) {
	switch strings.ToLower(string(args[2])) {
	case "on":
		s.gate &^= gateReplyOff | gateSkipNext | gateSkip
		s.call.OK()
	case "off":
		s.gate.set(gateReplyOff, true)
	case "skip":
		s.gate.set(gateSkipNext, !s.gate.has(gateReplyOff))
	default:
		s.call.Error(errSyntax)
	}
}
