package connection

import (
	"strings"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
)

func id(c *command.Call, own command.Connection) { c.Int(own.Client().ID) }

func info(c *command.Call, own command.Connection) { c.Text(own.Client().Line(c.NowNS) + "\n") }

func getName(c *command.Call, own command.Connection) {
	if name := own.Client().Names().Name; name == "" {
		c.Null()
	} else {
		c.String(name)
	}
}

func setName(c *command.Call, own command.Connection) {
	if nameOK(c, c.Args[2]) {
		rename(own.Client(), c.Args[2])
		c.OK()
	}
}

func rename(own *client.Client, name []byte) {
	names := own.Names()
	names.Name = string(name)
	own.SetNames(names)
}

// maxName bounds a connection's name, and what it says of its library, in bytes. CLIENT LIST shows them for each of up to 10,000
// clients and more. Names of hosts have 253.
const maxName = 512

// nameOK reports whether a connection can have this name, or answers why not.
func nameOK(c *command.Call, name []byte) bool {
	switch {
	case len(name) > maxName:
		c.Error(errClientNameLong, maxName)
	case !printable(name):
		c.Error(ErrClientName)
	default:
		return true
	}
	return false
}

// printable says whether a name is printable ASCII without blanks. Others would break the lines of CLIENT LIST.
func printable(name []byte) bool {
	for _, c := range name {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

func setInfo(c *command.Call, own command.Connection) {
	names, option, value := own.Client().Names(), strings.ToLower(string(c.Args[2])), c.Args[3]
	switch option {
	case "lib-name":
		names.LibName = string(value)
	case "lib-ver":
		names.LibVersion = string(value)
	default:
		c.Error(errClientOption, c.Args[2])
		return
	}
	switch {
	case len(value) > maxName:
		c.Error(errClientLibLong, option, maxName)
	case !printable(value):
		c.Error(errClientLibInfo, option)
	default:
		own.Client().SetNames(names)
		c.OK()
	}
}

func noEvict(c *command.Call, own command.Connection) { setOnOff(c, own.Client().NoEvict.Store) }
func noTouch(c *command.Call, own command.Connection) { setOnOff(c, own.Client().NoTouch.Store) }

// setOnOff sets what is ON or OFF, and answers anything else with a syntax error.
func setOnOff(c *command.Call, set func(on bool)) {
	word := strings.ToLower(string(c.Args[2]))
	if word != "on" && word != "off" {
		c.Error(argument.ErrSyntax)
		return
	}
	set(word == "on")
	c.OK()
}

func setReplies(c *command.Call, own command.Connection) {
	switch strings.ToLower(string(c.Args[2])) {
	case "on":
		own.SetReplies(true)
		c.OK()
	case "off":
		own.SetReplies(false)
	case "skip":
		own.SkipReply()
	default:
		c.Error(argument.ErrSyntax)
	}
}

// monitor is MONITOR. A transaction cannot begin it, as its reply would stand among others.
func (f family) monitor(c *command.Call, own command.Connection) {
	if c.Inside() {
		c.Error(ErrMonitorInExec)
		return
	}
	f.server().Clients.SetMonitor(own.Client(), true)
	c.OK()
}
