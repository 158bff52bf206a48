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
	c := command.Check{Row: row, Rights: s.client.User.Load().Rights()}
	work := c.Work(args)
	if work > command.CheckStep {
		s.prepareInSteps(row, args)
		return
	}
	c.Step(args)
	s.scratch.slice.did(work/lookEvery, 0)
	s.permitted(row, args, s.refusal(&c))
}

func (s *Session) prepareInSteps(row *command.Row, args [][]byte) {
	var c command.Check
	w := &stepwise{args: args, step: func(s *Session, args [][]byte) (more bool) {
		if rights := s.client.User.Load().Rights(); rights != c.Rights { // the first step, or they have changed meanwhile
			c = command.Check{Row: row, Rights: rights}
		}
		if more = c.Step(args); !more {
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
func (s *Session) refusal(c *command.Check) string {
	switch s.refused(c) {
	case "":
		return ""
	case acl.DeniedCommand:
		return formatError(errNoPermCommand, c.Row.FullName())
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
	s.client.LastCommand.Store(row.ACL)
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
