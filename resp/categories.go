package resp

import "celld/resp/acl"

// categories are the ACL categories of a command: Redis's where Redis has it.
func (c *command) categories() (set acl.Category) {
	add := func(when bool, categories acl.Category) {
		if when {
			set |= categories
		}
	}
	set = moreCategories[c.fullName()]
	add(c.flags&fast != 0 && c.parent == nil, acl.Fast) // no subcommand is
	add(set&acl.Fast == 0, acl.Slow)
	add(c.group == groupLimit || c.group == "module" || c.group == "rate_limit", acl.Celld)
	if c.run == nil { // a container
		return set
	}
	add(c.group == "generic", acl.Keyspace)
	add(c.flags&write != 0, acl.Write)
	add(c.flags&readonly != 0 && c.group != "scripting", acl.Read)
	add(c.group == "string", acl.String)
	add(c.group == "hash", acl.Hash)
	add(c.flags&admin != 0, acl.Admin|acl.Dangerous)
	add(c.flags&blocking != 0, acl.Blocking)
	add(c.group == "connection", acl.Connection)
	add(c.group == "transactions", acl.Transaction)
	add(c.group == "scripting", acl.Scripting)
	return set
}

// moreCategories are those that do not follow from a row. Who sets policies and rules changes the limits of all, as an operator does.
var moreCategories = map[string]acl.Category{
	"dbsize":          acl.Keyspace | acl.Fast,
	"flushall":        acl.Keyspace | acl.Dangerous,
	"flushdb":         acl.Keyspace | acl.Dangerous,
	"info":            acl.Dangerous,
	"keys":            acl.Dangerous,
	"lastsave":        acl.Admin | acl.Dangerous,
	"role":            acl.Admin | acl.Dangerous,
	"command":         acl.Connection,
	"command|count":   acl.Connection,
	"command|docs":    acl.Connection,
	"command|getkeys": acl.Connection,
	"command|help":    acl.Connection,
	"command|info":    acl.Connection,
	"command|list":    acl.Connection,
	"cl.policy|set":   acl.Admin | acl.Dangerous,
	"cl.policy|del":   acl.Admin | acl.Dangerous,
	"cl.rule|add":     acl.Admin | acl.Dangerous,
	"cl.rule|del":     acl.Admin | acl.Dangerous,
}
