package resp

import (
	"bytes"
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/wire"
)

// tracking is what CLIENT TRACKING has set on a connection; 0 is off.
//
// A client that tracks keeps what it has read until the server announces that the key has changed. Redis remembers who has
// read what. celld remembers nothing: it announces a key right behind the reply to the command that has read it, as if it
// had changed then. Limits change with nearly every call, so a copy is worth little, and looking for readers would cost
// each call.
type tracking uint32

const (
	trackingOn tracking = 1 << iota
	trackingOptIn
)

func (c *client) trackingMode() tracking { return tracking(c.tracking.Load()) }

// setTracking changes how the connection tracks. Turning tracking off also ends CLIENT CACHING.
func (s *Session) setTracking(mode tracking) {
	change(&s.srv.clients.tracking, s.client.tracking.Swap(uint32(mode)) != 0, mode != 0)
	if mode == 0 {
		s.gate.set(gateCaching, false)
	}
}

// tracked reports whether a client may cache what this command has answered. A script may have read any of its keys.
func (s *Session) tracked(row *command.Row) bool {
	mode := s.client.trackingMode()
	if mode == 0 || row.Flags&command.Readonly == 0 && row.Group != "scripting" {
		return false
	}
	return mode&trackingOptIn == 0 || s.gate.has(gateCaching)
}

// invalidate announces keys as changed. In RESP2, which has no message for that, it says nothing, as in Redis.
func (s *Session) invalidate(keys [][]byte) {
	if len(keys) == 0 || !s.call.RESP3 {
		return
	}
	keys = slices.CompactFunc(keys, bytes.Equal) // PTTL k and GET k, in a transaction
	s.call.Out = wire.AppendPush(s.call.Out, 2)
	s.call.String("invalidate")
	s.call.Array(len(keys))
	for _, key := range keys {
		s.call.Bulk(key)
	}
}

// endCaching ends CLIENT CACHING after a command outside MULTI that is not a CLIENT command.
func (s *Session) endCaching(row *command.Row) {
	if s.gate.has(gateCaching) && !s.gate.has(gateMulti) && (row == nil || row.Parent == nil || row.Parent.Name != "client") {
		s.gate.set(gateCaching, false)
	}
}

// trackingCall is CLIENT TRACKING with its options.
type trackingCall struct {
	mode            tracking
	redirect        int64
	prefixes, bcast bool
}

func cmdClientTracking(s *Session, args [][]byte) {
	var call trackingCall
	text := call.parse(s.srv, args[3:])
	was := s.client.trackingMode()
	mode := trackingOn | call.mode
	switch strings.ToLower(string(args[2])) {
	case "on":
		if text == "" {
			text = call.refusal(was)
		}
	case "off":
		mode = 0
	default:
		if text == "" {
			text = errSyntax
		}
	}
	if text != "" {
		s.call.Error("%s", text)
		return
	}
	s.setTracking(mode)
	s.call.OK()
}

// parse reads the options. It returns the text of an error, or "".
func (c *trackingCall) parse(srv *service, args [][]byte) string {
	for ; len(args) > 0; args = args[1:] {
		option, more := strings.ToLower(string(args[0])), len(args) > 1
		switch {
		case option == "optin":
			c.mode |= trackingOptIn
		case option == "bcast":
			c.bcast = true
		case option == "prefix" && more:
			c.prefixes = true
			args = args[1:]
		case option == "redirect" && more:
			if c.redirect != 0 {
				return errTrackingRedirects
			}
			id, ok := command.ParseInt(args[1])
			if !ok {
				return errNotInteger
			}
			if srv.clients.get(id) == nil {
				return errTrackingNoClient
			}
			c.redirect = id
			args = args[1:]
		default:
			return errSyntax
		}
	}
	return ""
}

// refusal is the error of a call that cannot change a connection in this mode, checked in Redis's order, or "".
func (c *trackingCall) refusal(was tracking) string {
	switch {
	case c.prefixes && !c.bcast:
		return errTrackingPrefix
	case c.bcast && was != 0:
		return errTrackingBcastSwitch
	case c.bcast && c.mode != 0:
		return errTrackingBcastOpt
	case c.bcast:
		return errTrackingNoBcast
	case c.redirect != 0:
		return errTrackingNoRedirect
	}
	return ""
}

func cmdClientCaching(s *Session, args [][]byte) {
	mode := s.client.trackingMode()
	word := strings.ToLower(string(args[2]))
	switch {
	case mode == 0:
		s.call.Error(errCachingOff)
	case word == "no":
		s.call.Error(errCachingNo)
	case word != "yes":
		s.call.Error(errSyntax)
	case mode&trackingOptIn == 0:
		s.call.Error(errCachingYes)
	default:
		s.gate.set(gateCaching, true)
		s.call.OK()
	}
}

// cmdClientGetRedir answers 0, which means this connection, or -1 without tracking: there is no other redirection.
func cmdClientGetRedir(s *Session, _ [][]byte) { s.call.Int(s.client.redirection()) }

// redirection is the id of the client that receives the announcements: 0 for this one, -1 for none.
func (c *client) redirection() int64 {
	if c.trackingMode() == 0 {
		return -1
	}
	return 0
}

func cmdClientTrackingInfo(s *Session, _ [][]byte) {
	flags := []string{"off"}
	switch mode := s.client.trackingMode(); {
	case mode&trackingOptIn != 0 && s.gate.has(gateCaching):
		flags = []string{"on", "optin", "caching-yes"}
	case mode&trackingOptIn != 0:
		flags = []string{"on", "optin"}
	case mode != 0:
		flags[0] = "on"
	}
	s.call.Map(3)
	s.call.String("flags")
	s.call.Set(len(flags))
	for _, name := range flags {
		s.call.String(name)
	}
	s.call.Field("redirect", s.client.redirection())
	s.call.String("prefixes")
	s.call.Array(0)
}
