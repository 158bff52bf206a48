package command

import (
	"bytes"
	"slices"

	"celld/resp/acl"
	"celld/resp/command/spec"
)

// AccessTo returns what a command does with the key that is its nth.
func (r *Row) AccessTo(n int, args [][]byte) acl.Access {
	both := acl.Reads | acl.Writes
	switch {
	case r.Access == spec.Looks:
		return 0
	case r.Access == spec.Writes, n > 0 && (r.Access == spec.Moves || r.Access == spec.Copies), r.Access == spec.Sets && !setReads(args):
		return acl.Writes
	case r.Access == spec.Copies, r.Access == spec.ByFlags && r.Flags&spec.Readonly != 0:
		return acl.Reads
	}
	return both
}

// setReads says that a SET returns the old value.
func setReads(args [][]byte) bool {
	return len(args) > 3 && slices.ContainsFunc(args[3:], func(arg []byte) bool { return bytes.EqualFold(arg, []byte("get")) })
}

// Categories are the ACL categories of a command: Redis's where Redis has it.
func (r *Row) Categories() (set acl.Category) {
	add := func(when bool, categories acl.Category) {
		if when {
			set |= categories
		}
	}
	set = moreCategories[r.FullName()]
	add(r.Flags&spec.Fast != 0 && r.Parent == nil, acl.Fast) // no subcommand is
	add(set&acl.Fast == 0, acl.Slow)
	add(r.Group == spec.GroupLimit, acl.Celld)
	if r.Run == nil { // a container
		return set
	}
	add(r.Group == "generic", acl.Keyspace)
	add(r.Flags&spec.Write != 0, acl.Write)
	add(r.Flags&spec.Readonly != 0 && r.Group != "scripting", acl.Read)
	add(r.Group == "string", acl.String)
	add(r.Group == "hash", acl.Hash)
	add(r.Flags&spec.Admin != 0, acl.Admin|acl.Dangerous)
	add(r.Flags&spec.Blocking != 0, acl.Blocking)
	add(r.Group == "connection", acl.Connection)
	add(r.Group == "transactions", acl.Transaction)
	add(r.Group == "scripting", acl.Scripting)
	return set
}

// moreCategories are those that do not follow from a row. Setting policies and rules is an operator's work: it changes the limits of all.
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
	"cl.explain":      acl.Limits,
	"cl.give":         acl.Limits,
	"cl.mtake":        acl.Limits,
	"cl.release":      acl.Limits,
	"cl.renew":        acl.Limits,
	"cl.reset":        acl.Limits,
	"cl.settle":       acl.Limits,
	"cl.show":         acl.Limits,
	"cl.take":         acl.Limits,
	"cl.throttle":     acl.Limits,
	"cl.policy|set":   acl.Admin | acl.Dangerous,
	"cl.policy|del":   acl.Admin | acl.Dangerous,
	"cl.rule|add":     acl.Admin | acl.Dangerous,
	"cl.rule|del":     acl.Admin | acl.Dangerous,
}
