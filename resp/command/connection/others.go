package connection

import (
	"bytes"
	"fmt"
	"strings"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
)

// manyClients take longer than a millisecond to list. So do some more ids to read.
const manyClients = 500

func (f family) list(c *command.Call) {
	if max(f.server().Clients.Count(), len(c.Args)) < manyClients {
		f.listAll(c)
		return
	}
	c.List(f.listAll)
}

func (f family) listAll(c *command.Call) {
	var ids map[int64]bool
	kind := ""
	switch rest := c.Args[2:]; {
	case len(rest) == 0:
	case len(rest) == 2 && bytes.EqualFold(rest[0], []byte("TYPE")):
		kind = typeOf(rest[1])
		if kind == "" {
			c.Error(errClientType, rest[1])
			return
		}
	case len(rest) > 1 && bytes.EqualFold(rest[0], []byte("ID")):
		ids = map[int64]bool{}
		for _, arg := range rest[1:] {
			id, ok := argument.ParseInt(arg)
			if !ok {
				c.Error(errClientID)
				return
			}
			ids[id] = true
		}
	default:
		c.Error(argument.ErrSyntax)
		return
	}
	var list []byte
	for _, of := range f.server().Clients.ByAge() {
		if ids != nil && !ids[of.ID] || kind != "" && kind != normal {
			continue
		}
		list = append(append(list, of.Line(c.NowNS)...), '\n')
		if c.OverOutput(len(list)) {
			return
		}
	}
	c.Text(string(list))
}

// normal is the type of every client.
const normal = "normal"

// typeOf reads a type as CLIENT LIST and KILL name it. "slave" is the old word for a replica. It returns "" for an unknown one.
func typeOf(name []byte) string {
	switch word := strings.ToLower(string(name)); word {
	case normal, "master", "replica", "pubsub":
		return word
	case "slave":
		return "replica"
	}
	return ""
}

// filter selects the clients that CLIENT KILL closes. A field that is nil or zero matches every client.
type filter struct {
	id, maxAge      int64 // positive if given; maxAge in seconds
	addr, localAddr []byte
	kind            string
	user            *acl.User
	skip            *client.Client
}

func (f *filter) matches(c *client.Client, nowNS int64) bool {
	return c != f.skip && (f.id == 0 || f.id == c.ID) &&
		(f.addr == nil || string(f.addr) == c.Addr) && (f.localAddr == nil || string(f.localAddr) == c.LocalAddr) &&
		(f.kind == "" || f.kind == normal) && (f.user == nil || f.user == c.User.Load()) && (f.maxAge == 0 || c.AgeS(nowNS) >= f.maxAge)
}

// kill is CLIENT KILL addr, or with filters, which are pairs.
func (f family) kill(c *command.Call, own command.Connection) {
	s, oldForm := f.server(), len(c.Args) == 3
	which := filter{addr: c.Args[2]}
	if !oldForm {
		which = filter{skip: own.Client()}
		if text := which.parse(c.Args[2:], s.Users); text != "" {
			c.Error("%s", text)
			return
		}
	}
	killed, itself := s.Clients.Kill(own.Client(), func(other *client.Client) bool { return which.matches(other, c.NowNS) })
	if itself {
		own.CloseAfterReply()
	}
	switch {
	case !oldForm:
		c.Int(killed)
	case killed == 0:
		c.Error(ErrNoSuchClient)
	default:
		c.OK()
	}
}

var filterWords = argument.Options{Valued: []string{"ID", "MAXAGE", "TYPE", "USER", "ADDR", "LADDR", "SKIPME"}, Refusal: argument.ErrSyntax}

// parse reads CLIENT KILL's filters. It returns the text of an error, or "".
func (f *filter) parse(args [][]byte, users *acl.Users) string {
	if len(args)%2 != 0 {
		return argument.ErrSyntax
	}
	caller := f.skip
	return filterWords.Read(args, func(option string, value []byte) string {
		n, ok := argument.ParseInt(value)
		ok = ok && n > 0
		switch option {
		case "ID":
			if f.id = n; !ok {
				return errClientIDRange
			}
		case "MAXAGE":
			if f.maxAge = n; !ok {
				return argument.ErrNotInteger
			}
		case "TYPE":
			if f.kind = typeOf(value); f.kind == "" {
				return fmt.Sprintf(errClientType, value)
			}
		case "USER":
			if f.user = users.Get(string(value)); f.user == nil {
				return fmt.Sprintf(errClientUser, value)
			}
		case "ADDR":
			f.addr = value
		case "LADDR":
			f.localAddr = value
		case "SKIPME":
			switch strings.ToLower(string(value)) {
			case "yes":
				f.skip = caller
			case "no":
				f.skip = nil
			default:
				return argument.ErrSyntax
			}
		}
		return ""
	})
}

// unblock is CLIENT UNBLOCK client-id [TIMEOUT|ERROR].
func (f family) unblock(c *command.Call) {
	why := store.ErrRefused
	if len(c.Args) > 4 {
		c.Error(errUnblockArgs, c.Args[1])
		return
	}
	if len(c.Args) == 4 {
		switch strings.ToLower(string(c.Args[3])) {
		case "timeout":
		case "error":
			why = client.ErrUnblocked
		default:
			c.Error(errUnblockReason)
			return
		}
	}
	id, ok := argument.ParseInt(c.Args[2])
	if !ok {
		c.Error(argument.ErrNotInteger)
		return
	}
	s := f.server()
	other := s.Clients.Get(id)
	c.Bool(other != nil && other.Unblock(s.Waits, why))
}
