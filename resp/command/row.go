package command

import (
	"fmt"
	"strings"

	"celld/resp/acl"
	"celld/resp/command/spec"
)

// Row is one row of the command table.
type Row struct {
	Name    string // lower case
	Arity   int    // arguments, the name included; -n: n or more
	Most    int    // arguments behind the name, where they are names of a list that is short
	Many    bool   // it may have more than ShortList arguments, as many as any command may have
	Flags   spec.Flags
	Keys    spec.KeyRange
	Access  spec.Access // to its keys
	Usage   string      // the arguments: word, [optional], a|b, repeated ...; UPPER case is literal
	Summary string
	Since   string // the first version of Redis that has it; empty: celld's own
	Group   string
	Cost    string // complexity; empty: O(1)
	Run     func(*Call)
	Overall bool // it is about all keys, or about policies and rules: where an engine keeps these, it may call Later
	Script  int  // the argument that is a script to compile; 0: there is none
	Sub     []*Row

	Parent *Row
	ACL    *acl.Command
	Stats  any // what its server counts of it
}

// FlagNames returns the flags that COMMAND INFO shows.
func (r *Row) FlagNames() []string {
	names := r.Flags.Names()
	if r.Keys.Counted {
		names = append(names, "movablekeys")
	}
	return names
}

// FullName is the row's name, after that of its container and a | for a subcommand.
func (r *Row) FullName() string {
	if r.Parent != nil {
		return r.Parent.Name + "|" + r.Name
	}
	return r.Name
}

// TakesMany says that a command may have as many arguments as any.
func (r *Row) TakesMany() bool { return r.Many || r.Keys.Last < 0 }

// ArityError returns the text of the error of a call with n arguments, its name included; or "" if it may have so many.
func (r *Row) ArityError(n int) string {
	switch {
	case r.Most > 0 && n > 2+r.Most:
		return fmt.Sprintf(errManyArgs, r.Most)
	case r.Arity > 0 && n != r.Arity, n < -r.Arity, r.Most == 0 && n > 2+spec.ShortList && !r.TakesMany():
		return fmt.Sprintf(ErrArity, r.FullName())
	}
	return ""
}

// manyArgs and manyBytes are how much a fast command may get and stay below a millisecond: a key takes 0.5 to 2 µs.
const (
	manyArgs  = 64
	manyBytes = 16 << 10
)

// Big reports arguments that make a command slow, though its row is fast.
func Big(args [][]byte) bool {
	if len(args) > manyArgs {
		return true
	}
	bytes := 0
	for _, arg := range args {
		bytes += len(arg)
	}
	return bytes > manyBytes
}

// FindSub returns the subcommand of this name in any case, or nil.
func (r *Row) FindSub(name []byte) *Row {
	for _, sub := range r.Sub {
		if len(sub.Name) == len(name) && strings.EqualFold(sub.Name, string(name)) {
			return sub
		}
	}
	return nil
}

// KeysOf returns the keys among a command's arguments.
func (r *Row) KeysOf(args [][]byte) [][]byte {
	first, last := r.Keys.Bounds(args)
	if last < first {
		return nil
	}
	keys := make([][]byte, 0, 1+(last-first)/r.Keys.Step)
	for i := first; i <= last; i += r.Keys.Step {
		keys = append(keys, args[i])
	}
	return keys
}

// ReadsState reports whether a command depends on the states of its keys, and not only on their existence and expiry.
func (r *Row) ReadsState() bool {
	switch r.Group {
	case "string", "hash", spec.GroupLimit:
		return r.Name != "cl.reset"
	}
	return r.Parent != nil && r.Parent.Name == "object"
}
