package session

import (
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/door"
	"celld/resp/gate"
)

// Before a command is queued or run, its user's right to each key is looked up, and a script is compiled. Both may take longer than others
// should wait. So the one is done in steps, and the other by a goroutine.

// prepare goes on with a command whose row is known.
func (f inFlight) prepare() {
	s, row, args := f.s, f.row, f.args
	if !s.gate.Has(gate.Rights) || s.gate.Has(gate.Multi) && row.Flags&spec.NoMulti != 0 { // which is refused for that
		f.permitted("")
		return
	}
	c := command.Check{Row: row, Rights: s.client.User.Load().Rights()}
	more := c.Step(args)
	if s.scratch.slice.Did(c.Did/lookEvery, 0); !more {
		f.permitted(f.refusal(&c))
		return
	}
	if w := (&stepwise{args: args, step: checkOn(c)}); w.some(s) {
		w.args = s.detach(args)
		s.waits = w
	}
}

// checkOn goes on with a check that takes long, and with its command.
func checkOn(c command.Check) stepFunc {
	return func(s *Session, args [][]byte) (more bool) {
		if rights := s.client.User.Load().Rights(); rights != c.Rights { // they have changed meanwhile
			c = command.Check{Row: c.Row, Rights: rights}
		}
		if more = c.Step(args); !more {
			f := inFlight{s, c.Row, args}
			f.permitted(f.refusal(&c))
		}
		return more
	}
}

// refusal returns the text of the error of a command that a check has refused, and logs that; or "".
func (f inFlight) refusal(c *command.Check) string {
	switch f.refused(c) {
	case "":
		return ""
	case acl.DeniedCommand:
		return formatError(door.ErrNoPermCommand, c.Row.FullName())
	}
	return door.ErrNoPermKey
}

// offloadFrom is how long a script is, in bytes, that may take a millisecond to compile. 64 KB take 15 ms, and up to 250.
const offloadFrom = 2 << 10

// permitted goes on with a command that its user may run, or that is answered with an error.
func (f inFlight) permitted(text string) {
	s, row, args := f.s, f.row, f.args
	if refused := s.srv.Closed(row); text == "" && refused != nil {
		text = refused.Text
	}
	if at := row.Script; text == "" && at > 0 && len(args[at]) >= offloadFrom {
		known := false
		text = errBusy // if a script becomes busy
		mark := len(s.call.Out)
		s.alone(func() {
			text, known = "", s.srv.scriptEngine().Knows(args[at])
		})
		if s.call.Out = s.call.Out[:mark]; text == "" && !known {
			f.compile()
			return
		}
	}
	f.admitted(text)
}

// compile compiles a script in a goroutine, one at a time, as that takes up to 10 MB. Then its command goes on.
func (f inFlight) compile() {
	s, row, args, srv := f.s, f.row, f.s.detach(f.args), f.s.srv
	s.client.LastCommand.Store(row.ACL)
	s.offload(func() func(*Session) {
		srv.listing.Lock()
		defer srv.listing.Unlock()
		keep := srv.scripts.Compile(args[row.Script])
		return func(*Session) {
			mark := len(s.call.Out)
			s.alone(func() { _ = keep() })
			s.call.Out = s.call.Out[:mark]
			f := inFlight{s, row, args}
			if refused := srv.Closed(row); refused != nil {
				f.admitted(refused.Text)
				return
			}
			f.admitted("")
		}
	})
}
