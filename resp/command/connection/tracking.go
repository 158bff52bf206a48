package connection

import (
	"strings"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
)

// trackingCall is CLIENT TRACKING with its options.
type trackingCall struct {
	mode                      client.Tracking
	redirect, prefixes, bcast bool
}

// tracking is CLIENT TRACKING ON|OFF [option ...]. Turning tracking off also ends CLIENT CACHING.
func (f family) tracking(c *command.Call, own command.Connection) {
	clients := f.server().Clients
	var call trackingCall
	text := call.parse(clients, c.Args[3:])
	mode := client.Tracks | call.mode
	switch word := strings.ToLower(string(c.Args[2])); {
	case word == "off":
		mode = 0
	case text != "":
	case word == "on":
		text = call.refusal(own.Client().Tracking())
	default:
		text = argument.ErrSyntax
	}
	if text != "" {
		c.Error("%s", text)
		return
	}
	if clients.SetTracking(own.Client(), mode); mode == 0 {
		own.SetCaching(false)
	}
	c.OK()
}

var trackingWords = argument.Options{Flags: []string{"OPTIN", "BCAST"}, Valued: []string{"PREFIX", "REDIRECT"}, Refusal: argument.ErrSyntax}

// parse reads the options. It returns the text of an error, or "".
func (t *trackingCall) parse(clients *client.List, args [][]byte) string {
	return trackingWords.Read(args, func(option string, value []byte) string {
		id, ok := argument.ParseInt(value)
		switch {
		case option == "OPTIN":
			t.mode |= client.OptsIn
		case option == "BCAST":
			t.bcast = true
		case option == "PREFIX":
			t.prefixes = true
		case t.redirect:
			return errTrackingRedirects
		case !ok:
			return argument.ErrNotInteger
		case clients.Get(id) == nil:
			return errTrackingNoClient
		default:
			t.redirect = true
		}
		return ""
	})
}

// refusal is the error of a call that cannot change a connection in this mode, checked in Redis's order, or "".
func (t *trackingCall) refusal(was client.Tracking) string {
	switch {
	case t.prefixes && !t.bcast:
		return errTrackingPrefix
	case t.bcast && was != 0:
		return errTrackingBcastSwitch
	case t.bcast && t.mode != 0:
		return errTrackingBcastOpt
	case t.bcast:
		return errTrackingNoBcast
	case t.redirect:
		return errTrackingNoRedirect
	}
	return ""
}

func caching(c *command.Call, own command.Connection) {
	mode := own.Client().Tracking()
	word := strings.ToLower(string(c.Args[2]))
	switch {
	case mode == 0:
		c.Error(errCachingOff)
	case word == "no":
		c.Error(errCachingNo)
	case word != "yes":
		c.Error(argument.ErrSyntax)
	case mode&client.OptsIn == 0:
		c.Error(ErrCachingYes)
	default:
		own.SetCaching(true)
		c.OK()
	}
}

func getRedir(c *command.Call, own command.Connection) { c.Int(own.Client().Redirection()) }

func trackingInfo(c *command.Call, own command.Connection) {
	flags := []string{"off"}
	switch mode := own.Client().Tracking(); {
	case mode&client.OptsIn != 0 && own.Caching():
		flags = []string{"on", "optin", "caching-yes"}
	case mode&client.OptsIn != 0:
		flags = []string{"on", "optin"}
	case mode != 0:
		flags[0] = "on"
	}
	c.Map(3)
	c.String("flags")
	c.StringSet(flags)
	c.Field("redirect", own.Client().Redirection())
	c.String("prefixes")
	c.Array(0)
}
