package command

import (
	"bytes"
	"iter"
	"strings"
)

var redacted = []byte("(redacted)")

// Shown are the arguments of a command as the slow log and MONITOR show them, with (redacted) in place of each that may be secret. It makes
// no copy: that of a million arguments kept the loop for 200 ms, as who allocates much must help the collector of garbage.
func Shown(args [][]byte) iter.Seq2[int, []byte] {
	from := secretFrom(args)
	return func(yield func(int, []byte) bool) {
		for i, arg := range args {
			if i >= from {
				arg = redacted
			}
			if !yield(i, arg) {
				return
			}
		}
	}
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

// Told are the arguments of an operator's change as the log has them, with (redacted) in place of passwords: those among the rules of ACL
// SETUSER, and the value of a parameter of CONFIG SET that has pass in its name.
func Told(args [][]byte) iter.Seq2[int, []byte] {
	is := func(at int, word string) bool { return bytes.EqualFold(args[at], []byte(word)) }
	setsUser, sets := len(args) > 2 && is(0, "acl") && is(1, "setuser"), len(args) > 2 && is(0, "config") && is(1, "set")
	return func(yield func(int, []byte) bool) {
		for i, arg := range args {
			if i > 2 && (setsUser && len(arg) > 0 && strings.IndexByte("><#!", arg[0]) >= 0 ||
				sets && i%2 == 1 && bytes.Contains(bytes.ToLower(args[i-1]), []byte("pass"))) {
				arg = redacted
			}
			if !yield(i, arg) {
				return
			}
		}
	}
}
