package resp

import (
	"celld/resp/client"
	"celld/resp/command"
)

// tracked reports whether a client that tracks may cache what a command has answered. A script may have read any of its keys.
func (g gate) tracked(t client.Tracking, row *command.Row) bool {
	if t == 0 || row.Flags&command.Readonly == 0 && row.Group != "scripting" {
		return false
	}
	return t&client.OptsIn == 0 || g.has(gateCaching)
}

// endCaching ends CLIENT CACHING after a command outside MULTI that is not a CLIENT command.
func (g *gate) endCaching(row *command.Row) {
	if g.has(gateCaching) && !g.has(gateMulti) && (row == nil || row.Parent == nil || row.Parent.Name != "client") {
		g.set(gateCaching, false)
	}
}
