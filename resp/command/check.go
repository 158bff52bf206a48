package command

import "celld/resp/acl"

// Check finds out in steps whether a user's rights allow a command. Row and Rights are given.
type Check struct {
	Row    *Row
	Rights *acl.Rights
	Reason acl.Reason // why they do not; "": they do, as far as it has come
	Object string     // what the reason is about: the command or a key

	begun          bool
	at, last       int // the key that it looks at, and the last one
	keys, patterns int // that it is done with
}

// CheckStep bounds a step, by patterns that are matched with keys: 3 ns each for those of usual services, and up to 0.25 µs. So do
// checkBytes of a key count as a key.
const (
	CheckStep  = 4096
	checkBytes = 16
)

// KeyCost is how often a key counts.
func KeyCost(key []byte) int { return 1 + len(key)/checkBytes }

// Work is how much a check has to do at most.
func (c *Check) Work(args [][]byte) int {
	patterns, keys := c.Rights.Patterns(), len(args)
	if patterns == 0 {
		return 0
	}
	for i := 0; i < len(args) && patterns*keys <= CheckStep; i++ {
		keys += len(args[i]) / checkBytes
	}
	return patterns * keys
}

// Step does a part of it, and reports whether there is more.
func (c *Check) Step(args [][]byte) (more bool) {
	if !c.begun {
		c.begun = true
		if !c.Rights.MayRun(c.Row.ACL, args) {
			c.Reason, c.Object = acl.DeniedCommand, c.Row.FullName()
			return false
		}
		c.at, c.last = c.Row.KeyBounds(args)
	}
	for work := CheckStep; c.at <= c.last && work > 0; {
		key := args[c.at]
		each := KeyCost(key)
		may, looked := c.Rights.Look(key, c.Row.AccessTo(c.keys, args), c.patterns, 1+work/each)
		work -= 1 + looked*each
		switch c.patterns += looked; {
		case may:
			c.at, c.keys, c.patterns = c.at+c.Row.Keys.Step, c.keys+1, 0
		case c.patterns == c.Rights.Patterns():
			c.Reason, c.Object = acl.DeniedKey, string(key)
			return false
		}
	}
	return c.at <= c.last
}
