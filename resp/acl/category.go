package acl

import "slices"

// Category is a set of ACL categories.
type Category uint32

// The categories of Redis 7.0 in its order, and celld's own. Those without a command here have no constant.
const (
	Keyspace Category = 1 << iota
	Read
	Write
	_ // set
	_ // sortedset
	_ // list
	Hash
	String
	_ // bitmap
	_ // hyperloglog
	_ // geo
	_ // stream
	_ // pubsub
	Admin
	Fast
	Slow
	Blocking
	Dangerous
	Connection
	Transaction
	Scripting
	Celld  // CL.* and GCRA
	Limits // of these, what applications send
)

// CategoryNames are the names of all categories, in the order of their bits.
var CategoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin",
	"fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", "celld",
	"limits",
}

// ParseCategory returns a category by its name in any case, or 0.
func ParseCategory(name string) Category {
	if i := slices.Index(CategoryNames, lower(name)); i >= 0 {
		return 1 << i
	}
	return 0
}

// Names are the names of the categories in the set.
func (c Category) Names() (names []string) {
	for i, name := range CategoryNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// lower is strings.ToLower of ASCII alone, as Redis compares words. Unicode has other letters whose lower case is a k or an s.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
