package resp

import (
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/script"
)

// Before a command is queued or run, its user's right to each key is looked up, and a script is compiled. Both may take longer than others
// should wait. So the one is done in steps, and the other by a goroutine.

// prepare goes on with a command whose row is known.
func (s *Session) prepare(row *command.Row, args [][]byte) {
	if !s.gate.has(gateRights) || s.gate.has(gateMulti) && row.Flags&command.NoMulti != 0 { // which is refused for that
		s.permitted(row, args, "")
		return
	}
	c := denialCheck{row: row, rights: s.client.user.Load().Rights()}
	work := c.work(args)
	if work > rightsStep {
		s.prepareInSteps(row, args)
		return
	}
	c.some(args, rightsStep)
	s.scratch.slice.did(work/lookEvery, 0)
	s.permitted(row, args, s.refusal(&c))
}

func (s *Session) prepareInSteps(row *command.Row, args [][]byte) {
	var c denialCheck
	w := &stepwise{args: args, step: func(s *Session, args [][]byte) (more bool) {
		if rights := s.client.user.Load().Rights(); rights != c.rights { // the first step, or they have changed meanwhile
			c = denialCheck{row: row, rights: rights}
		}
		if more = c.some(args, rightsStep); !more {
			s.permitted(row, args, s.refusal(&c))
		}
		return more
	}}
	if w.some(s) {
		w.args = s.detach(args)
		s.waits = w
	}
}

// refusal returns the text of the error of a command that a check has refused, and logs that; or "".
func (s *Session) refusal(c *denialCheck) string {
	if c.reason == "" {
		return ""
	}
	context := "toplevel"
	if s.gate.has(gateMulti) {
		context = "multi"
	}
	s.noteDenial(c.reason, context, c.object, c.row)
	if c.reason == acl.DeniedCommand {
		return formatError(errNoPermCommand, c.row.FullName())
	}
	return errNoPermKey
}

// compileAside is how long a script is, in bytes, that may take a millisecond to compile. 64 KB take 15 ms, and up to 250.
const compileAside = 2 << 10

// permitted goes on with a command that its user may run, or that is answered with an error.
func (s *Session) permitted(row *command.Row, args [][]byte, text string) {
	if text == "" {
		text = s.closed(row)
	}
	if at := row.Script; text == "" && at > 0 && len(args[at]) >= compileAside && len(args[at]) <= script.MaxScript {
		known := false
		text = errBusy // if a script becomes busy
		mark := len(s.call.Out)
		s.alone(func() {
			text, known = "", s.srv.scriptEngine().Knows(script.SHA1(args[at]))
		})
		if s.call.Out = s.call.Out[:mark]; text == "" && !known {
			s.compile(row, args)
			return
		}
	}
	s.admitted(row, args, text)
}

// compile has a script compiled, one at a time, as that takes up to 10 MB, and goes on with its command.
func (s *Session) compile(row *command.Row, args [][]byte) {
	s.client.lastCommand.Store(row)
	s.goAside(args, func(args [][]byte) func() func(*Session) {
		return func() func(*Session) {
			srv := s.srv
			srv.listing.Lock()
			defer srv.listing.Unlock()
			compiled := script.Compile(args[row.Script])
			return func(s *Session) {
				mark := len(s.call.Out)
				s.alone(func() { _, _ = srv.scriptEngine().Keep(compiled) })
				s.call.Out = s.call.Out[:mark]
				s.admitted(row, args, s.closed(row))
			}
		}
	}).row = nil
}

// denialCheck finds out in steps whether rights allow a command.
type denialCheck struct {
	row    *command.Row
	rights *acl.Rights
	reason acl.Reason // why they do not; "": they do, as far as it has come
	object string     // what the reason is about: the command or a key

	begun          bool
	at, last       int // the key that it looks at, and the last one
	keys, patterns int // that it is done with
}

// rightsStep bounds a step, by patterns that are matched with keys: 3 ns each for those of usual services, and up to 0.25 µs. So do
// rightsBytes of a key count as a key.
const (
	rightsStep  = 4096
	rightsBytes = 16
)

// work is how much a check has to do at most.
func (c *denialCheck) work(args [][]byte) int {
	patterns, keys := c.rights.Patterns(), len(args)
	if patterns == 0 {
		return 0
	}
	for i := 0; i < len(args) && patterns*keys <= rightsStep; i++ {
		keys += len(args[i]) / rightsBytes
	}
	return patterns * keys
}

// some does so much of it, and reports whether there is more.
func (c *denialCheck) some(args [][]byte, work int) (more bool) {
	if !c.begun {
		c.begun = true
		if !c.rights.MayRun(c.row.ACL, args) {
			c.reason, c.object = acl.DeniedCommand, c.row.FullName()
			return false
		}
		c.at, c.last = c.row.KeyBounds(args)
	}
	for c.at <= c.last && work > 0 {
		key := args[c.at]
		each := 1 + len(key)/rightsBytes
		may, looked := c.rights.Look(key, c.row.AccessTo(c.keys, args), c.patterns, 1+work/each)
		work -= 1 + looked*each
		switch c.patterns += looked; {
		case may:
			c.at, c.keys, c.patterns = c.at+c.row.Keys.Step, c.keys+1, 0
		case c.patterns == c.rights.Patterns():
			c.reason, c.object = acl.DeniedKey, string(key)
			return false
		}
	}
	return c.at <= c.last
}
