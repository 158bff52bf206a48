package command

import (
	"bytes"
	"slices"
)

const redacted = "(redacted)"

// Redact replaces those arguments of a command that may be secret, for the slow log and MONITOR.
func Redact(args [][]byte) [][]byte {
	from := secretFrom(args)
	if from >= len(args) {
		return args
	}
	return append(slices.Clone(args[:from]), slices.Repeat([][]byte{[]byte(redacted)}, len(args)-from)...)
}

// secretFrom returns which argument is the first that may be secret, as all behind it: the passwords of AUTH and HELLO, the arguments of
// CONFIG's subcommands and of ACL SETUSER, and those of the command that ACL DRYRUN is about, which may be any of these.
func secretFrom(args [][]byte) (from int) {
	is := func(at int, word string) bool { return at < len(args) && bytes.EqualFold(args[at], []byte(word)) }
	switch {
	case is(0, "auth"):
		return 1
	case is(0, "hello"), is(0, "config"), is(0, "acl") && is(1, "setuser"):
		return 2
	case is(0, "acl") && is(1, "dryrun"):
		return 4
	}
	return len(args)
}
