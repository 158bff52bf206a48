package command

import "celld/resp/acl"

// Check finds out in steps whether a user's rights allow a command. Row and Rights are given.
type Check struct {
	Row    *Row
	Rights *acl.Rights
	Reason acl.Reason // why they do not; "": they do, as far as it has come
	Object string     // what the reason is about: the command or a key

	Did int // how many patterns were matched with keys

	begun          bool
	at, last       int // the key that it looks at, and the last one
	keys, patterns int // that it is done with
}

// CheckStep bounds a step, by patterns that are matched with keys: 3 ns each for those of usual services, and up to 0.25 µs.
const CheckStep = 4096

// KeyCost is how often a key counts: once, and once more for every 16 bytes.
func KeyCost(key []byte) int { return 1 + len(key)/16 }

// Step does a part of it, and reports whether there is more.
func (c *Check) Step(args [][]byte) (more bool) {
	if !c.begun {
		c.begun = true
		if !c.Rights.MayRun(c.Row.ACL, args) {
			c.Reason, c.Object = acl.DeniedCommand, c.Row.FullName()
			return false
		}
		c.at, c.last = c.Row.Keys.Bounds(args)
	}
	for most := c.Did + CheckStep; c.at <= c.last && c.Did < most; {
		key := args[c.at]
		each := KeyCost(key)
		may, looked := c.Rights.Look(key, c.Row.AccessTo(c.keys, args), c.patterns, 1+(most-c.Did)/each)
		c.Did += 1 + looked*each
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
