package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Access is what a command does with a key.
type Access uint8

// A command that only asks whether a key exists, such as EXISTS, does neither. Any pattern lets it.
const (
	Reads Access = 1 << iota
	Writes
)

// Rights are what a user may do. They never change.
type Rights struct {
	table     *Table
	on        bool
	noPass    bool   // any password will do
	sanitize  string // sanitize, skipSanitize or none; without a meaning here
	passwords []digest

	allKeys  bool
	patterns []pattern
	onKey    func(key []byte, reads, writes bool) bool // OnKey
	channels bool                                      // all; without a meaning here

	allowed   []uint64 // a bit a command, by its id
	all       bool     // each command
	additive  bool     // rules begin at -@all, else at +@all
	rules     []string // on commands, after that: +get, -@admin
	firstArgs map[int][]string
}

// digest is the SHA-256 of a password.
type digest [sha256.Size]byte

// Flags that Redis's files have: whether RESTORE trusts this user.
const sanitize, skipSanitize = "sanitize-payload", "skip-sanitize-payload"

type pattern struct {
	access Access
	glob   string
	match  func(key []byte) bool
}

// noRights are those of a new user.
func noRights(t *Table) *Rights {
	return &Rights{table: t, allowed: make([]uint64, (len(t.commands)+63)/64), additive: true}
}

// allRights are those of the user default, where nobody has changed them.
func allRights(t *Table) *Rights {
	r := noRights(t)
	r.allow(true)
	r.on, r.noPass, r.allKeys, r.channels = true, true, true, true
	return r
}

func (r *Rights) clone() *Rights {
	c := *r
	c.passwords, c.patterns, c.rules = slices.Clone(r.passwords), slices.Clone(r.patterns), slices.Clone(r.rules)
	c.allowed, c.firstArgs = slices.Clone(r.allowed), maps.Clone(r.firstArgs)
	return &c
}

// allow lets the user run every command, or none.
func (r *Rights) allow(all bool) {
	bits := uint64(0)
	if all {
		bits = ^bits
	}
	for i := range r.allowed {
		r.allowed[i] = bits
	}
	r.all, r.additive, r.rules, r.firstArgs = all, !all, nil, nil
}

// On says that one may authenticate as the user.
func (r *Rights) On() bool { return r.on }

// NoPass says that any password will do.
func (r *Rights) NoPass() bool { return r.noPass }

// MayAll says that nothing is forbidden.
func (r *Rights) MayAll() bool { return r.all && r.allKeys }

// MayRun says whether a command may run with these arguments, whatever its keys.
func (r *Rights) MayRun(c *Command, args [][]byte) bool {
	if r.all || c.Public || r.has(c) {
		return true
	}
	if len(args) < 2 || c.parent != nil {
		return false
	}
	return slices.Contains(r.firstArgs[c.id], lower(string(args[1])))
}

func (r *Rights) has(c *Command) bool { return r.allowed[c.id/64]&(1<<(c.id%64)) != 0 }

// MayTouch says whether a command with this access may name a key.
func (r *Rights) MayTouch(key []byte, access Access) bool {
	may, _ := r.Look(key, access, 0, len(r.patterns))
	return may
}

// Patterns is how many of them MayTouch may look at.
func (r *Rights) Patterns() int { return len(r.patterns) }

// Look is MayTouch in steps. It looks at so many patterns at most, from one on, and returns how many it has looked at.
func (r *Rights) Look(key []byte, access Access, from, most int) (may bool, looked int) {
	if r.allKeys {
		return true, 0
	}
	for _, p := range r.patterns[from:min(len(r.patterns), from+most)] {
		if looked++; p.access&access == access && p.match(key) {
			return true, looked
		}
	}
	return false, looked
}

// OnKey is MayTouch for those who know no Access; nil: it would say yes to all. It is made once, as each command asks for it.
func (r *Rights) OnKey() func(key []byte, reads, writes bool) bool { return r.onKey }

// publish makes rights ready for others.
func (r *Rights) publish() *Rights {
	r.onKey = nil
	if !r.allKeys {
		r.onKey = r.mayUse
	}
	return r
}

func (r *Rights) mayUse(key []byte, reads, writes bool) bool {
	var access Access
	if reads {
		access |= Reads
	}
	if writes {
		access |= Writes
	}
	return r.MayTouch(key, access)
}

// accepts compares digests of equal length in constant time, all of them.
func (r *Rights) accepts(password []byte) bool {
	if r.noPass {
		return true
	}
	got, found := sha256.Sum256(password), 0
	for _, want := range r.passwords {
		found |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return found == 1
}

// Flags are on or off, and others, as ACL GETUSER names them.
func (r *Rights) Flags() []string {
	flags := []string{"off"}
	if r.on {
		flags[0] = "on"
	}
	if r.noPass {
		flags = append(flags, "nopass")
	}
	if r.sanitize != "" {
		flags = append(flags, r.sanitize)
	}
	return flags
}

// Passwords are the SHA-256 of each, in hexadecimal.
func (r *Rights) Passwords() []string {
	list := make([]string, len(r.passwords))
	for i, p := range r.passwords {
		list[i] = hex.EncodeToString(p[:])
	}
	return list
}

// Keys are the patterns as rules: ~app:* %R~other:*.
func (r *Rights) Keys() string {
	if r.allKeys {
		return "~*"
	}
	list := make([]string, len(r.patterns))
	for i, p := range r.patterns {
		list[i] = map[Access]string{Reads | Writes: "~", Reads: "%R~", Writes: "%W~"}[p.access] + p.glob
	}
	return strings.Join(list, " ")
}

// Channels is the rule on channels. There are none here, so it is one of two.
func (r *Rights) Channels() string {
	if r.channels {
		return "&*"
	}
	return ""
}

// Commands are the rules on commands, in the order in which they were given: -@all +@read -keys.
func (r *Rights) Commands() string {
	first := "+@all"
	if r.additive {
		first = "-@all"
	}
	return strings.Join(append([]string{first}, r.rules...), " ")
}

// String is all rules, which make these rights of a new user's. ACL LIST and the file have it.
func (r *Rights) String() string {
	words := r.Flags()
	for _, p := range r.Passwords() {
		words = append(words, "#"+p)
	}
	if keys := r.Keys(); keys != "" {
		words = append(words, keys)
	}
	channels := r.Channels()
	if channels == "" {
		channels = "resetchannels"
	}
	return strings.Join(append(words, channels, r.Commands()), " ")
}
