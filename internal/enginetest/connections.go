package enginetest

import (
	"slices"

	"celld/resp/wire"
)

// anyNode is of commands that Sentinels know, too.
const anyNode = ofSentinel | noScript | whileLoading

// connectionCommands are about the connection, and messages.
func connectionCommands() []command {
	return []command{
		{"hello", -1, anyNode | noAuth, noKeys, hello},
		{"auth", -2, anyNode | noAuth, noKeys, auth},
		{"select", 2, noScript | whileLoading, noKeys, selectDB},
		{"asking", 1, noScript, noKeys, asking},
		{"discard", 1, anyNode, noKeys, func(x *call) { x.fail("ERR DISCARD without MULTI") }}, // it has no MULTI
		{"ping", -1, ofSentinel | noScript, noKeys, ping},
		{"publish", 3, noScript | whileLoading, noKeys, publish},
		{"subscribe", -2, anyNode, noKeys, subscribe},
		{"unsubscribe", -1, anyNode, noKeys, func(x *call) { x.unsubscribe("unsubscribe", x.client.channels) }},
		{"punsubscribe", -1, anyNode, noKeys, func(x *call) { x.unsubscribe("punsubscribe", nil) }},
		{"sunsubscribe", -1, noScript | whileLoading, noKeys, func(x *call) { x.unsubscribe("sunsubscribe", nil) }},
	}
}

func hello(x *call) {
	e, c := x.node.engine, x.client
	if len(x.args) > 1 {
		version, ok := integer(x.args[1])
		switch {
		case !ok:
			x.fail("ERR Protocol version is not an integer or out of range")
			return
		case version < 2 || version > 3:
			x.fail("NOPROTO unsupported protocol version")
			return
		}
		for i := 2; i < len(x.args); i++ {
			switch option, left := x.option(i), len(x.args)-i-1; {
			case option == "AUTH" && left >= 2:
				if !x.login(x.arg(i+1), x.arg(i+2)) {
					return
				}
				i += 2
			case option == "SETNAME" && left >= 1:
				i++
			default:
				x.fail("ERR Syntax error in HELLO option '" + x.arg(i) + "'")
				return
			}
		}
		if c.authed {
			c.resp3, x.resp3 = version == 3, version == 3
		}
	}
	if !c.authed {
		x.fail("NOAUTH HELLO must be called with the client already authenticated")
		return
	}
	proto, role := int64(2), "master"
	if c.resp3 {
		proto = 3
	}
	if !x.node.IsMaster() {
		role = "replica"
	}
	x.pairs(7)
	x.out = wire.AppendBulks(x.out, "server", e.serverName(), "version", e.version(), "proto")
	x.int(proto)
	x.bulk("id")
	x.int(c.id)
	x.out = wire.AppendBulks(x.out, "mode", x.node.mode(), "role", role, "modules")
	x.array(0)
}

func auth(x *call) {
	switch len(x.args) {
	case 2:
		if x.node.engine.options.Password == "" {
			x.fail("ERR AUTH <password> called without any password configured for the default user. " +
				"Are you sure your configuration is correct?")
		} else if x.login("default", x.arg(1)) {
			x.ok()
		}
	case 3:
		if x.login(x.arg(1), x.arg(2)) {
			x.ok()
		}
	default:
		x.fail(errSyntax)
	}
}

func (x *call) login(user, password string) bool {
	want := x.node.engine.options.Password
	if right := user == "default" && (want == "" || password == want); !right {
		x.fail("WRONGPASS invalid username-password pair or user is disabled.")
		return false
	}
	x.client.authed = true
	return true
}

func asking(x *call) {
	if x.node.engine.options.Kind != Cluster {
		x.fail(errNoCluster)
		return
	}
	x.client.asking = true
	x.ok()
}

func selectDB(x *call) {
	switch n, ok := integer(x.args[1]); {
	case !ok:
		x.fail(errInteger)
	case n != int64(int32(n)):
		x.fail("ERR value is out of range, value must between -2147483648 and 2147483647")
	case x.node.engine.options.Kind == Cluster && n != 0:
		x.fail("ERR SELECT is not allowed in cluster mode")
	case n < 0 || n >= databases:
		x.fail("ERR DB index is out of range")
	default:
		x.client.db = int(n)
		x.ok()
	}
}

func ping(x *call) {
	switch {
	case len(x.args) > 2:
		x.wrongArity("ping")
	case len(x.args) == 2:
		x.bulk(x.arg(1))
	default:
		x.out = wire.AppendStatus(x.out, "PONG")
	}
}

// publish reaches all nodes of a Cluster that the node reaches; else its own clients, and those of its replicas.
func publish(x *call) {
	n := x.node
	count := n.tell(x.arg(1), x.arg(2))
	for _, other := range n.engine.nodes {
		hears := other.source == n
		if n.engine.options.Kind == Cluster {
			hears = other.reachable() && n.reachable()
		}
		if other != n && other.up && hears {
			other.tell(x.arg(1), x.arg(2))
		}
	}
	x.int(count)
}

// tell sends a message to the node's clients.
func (n *Node) tell(channel, message string) (count int64) {
	for _, c := range n.clients {
		if slices.Contains(c.channels, channel) {
			c.push(wire.AppendBulks(pushHead(nil, c.resp3, 3), "message", channel, message))
			count++
		}
	}
	return count
}

func pushHead(out []byte, resp3 bool, n int) []byte {
	if resp3 {
		return wire.AppendPush(out, n)
	}
	return wire.AppendArray(out, n)
}

func subscribe(x *call) {
	c := x.client
	for _, channel := range x.args[1:] {
		if !slices.Contains(c.channels, string(channel)) {
			c.channels = append(c.channels, string(channel))
		}
		x.out = wire.AppendBulks(pushHead(x.out, x.resp3, 3), "subscribe", string(channel))
		x.int(int64(len(c.channels)))
	}
}

// unsubscribe ends subscriptions: those that are named, or all. There are none of patterns and slots.
func (x *call) unsubscribe(what string, all []string) {
	c, count := x.client, int64(0)
	if len(x.args) > 1 {
		all = nil
	}
	for _, channel := range x.args[1:] {
		all = append(all, string(channel))
	}
	each := func(name func()) {
		x.out = wire.AppendString(pushHead(x.out, x.resp3, 3), what)
		if name(); what != "sunsubscribe" {
			count = int64(len(c.channels))
		}
		x.int(count)
	}
	for _, channel := range all {
		if what == "unsubscribe" {
			c.channels = slices.DeleteFunc(slices.Clone(c.channels), func(other string) bool { return other == channel })
		}
		each(func() { x.bulk(channel) })
	}
	if len(all) == 0 {
		each(x.null)
	}
}
