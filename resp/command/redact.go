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
	from = len(args)
	switch {
	case bytes.EqualFold(args[0], []byte("auth")):
		from = 1
	case bytes.EqualFold(args[0], []byte("hello")):
		from = 2
	case bytes.EqualFold(args[0], []byte("config")) && len(args) > 2:
		from = 2
	case bytes.EqualFold(args[0], []byte("acl")) && len(args) > 2 && bytes.EqualFold(args[1], []byte("setuser")):
		from = 2
	case bytes.EqualFold(args[0], []byte("acl")) && len(args) > 4 && bytes.EqualFold(args[1], []byte("dryrun")):
		from = 4
	}
	return from
}
