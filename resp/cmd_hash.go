package resp

import (
	"cmp"
	"errors"
	"slices"

	"celld/resp/command"
	"celld/store"
	"celld/store/memory"
)

// Tools see a key that holds limits as a hash. A field is the name of a limit, and its value is what is used of that limit.

// hashRead is what a command wants to know of a key's limits: the names of those that it asks for, and how it replies with these and what
// is used of each.
type hashRead struct {
	asks  func(name string) bool
	reply func(s *Session, fields [][2]string, found bool)
}

// readHash answers a command that reads a key's limits, and an error where the key holds none, or leases lead to a key that the user may
// not read: what is used has that key's name. What takes longer than a millisecond to write as text is written by a goroutine.
func (s *Session) readHash(args [][]byte, reads func(args [][]byte) hashRead) {
	keys, a := s.store(), s.access()
	if bytes, _ := keys.KeyBytes(args[1], s.nowNS); bytes < asideBytes || !s.mayGoAside() {
		r := reads(args)
		readFields(keys, args[1], a, r).write(s, r)
		return
	}
	s.goAside(args, func(args [][]byte) func() func(*Session) {
		srv, r := s.srv, reads(args)
		return func() func(*Session) {
			srv.listing.Lock()
			defer srv.listing.Unlock()
			lane := srv.execution.lane(a.Lane)
			lane.RLock()
			f := readFields(keys, args[1], a, r)
			lane.RUnlock()
			f.makeText()
			return func(s *Session) { f.write(s, r) }
		}
	})
}

// keyFields are a key's limits: copies, as others wait for the key meanwhile.
type keyFields struct {
	states []store.LimitState
	text   [][2]string
	found  bool
	err    error
}

func readFields(keys *memory.Store, key []byte, a store.Access, r hashRead) *keyFields {
	f := &keyFields{}
	var refused error
	f.found, f.err = keys.Limits(key, a, func(l *store.LimitState) {
		if refused != nil || !r.asks(string(l.AppendName(nil))) {
			return
		}
		if refused = l.Reach(a.May, true, false); refused == nil {
			copied := *l
			copied.State.Ring = slices.Clone(l.State.Ring)
			f.states = append(f.states, copied)
		}
	})
	f.err = cmp.Or(f.err, refused)
	return f
}

func (f *keyFields) makeText() {
	for i := range f.states {
		l := &f.states[i]
		f.text = append(f.text, [2]string{string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))})
	}
	f.states = nil
}

func (f *keyFields) write(s *Session, r hashRead) {
	if f.err != nil {
		s.replyStoreError(f.err)
		return
	}
	f.makeText()
	bytes := 0
	for _, field := range f.text {
		bytes += len(field[1])
	}
	if !s.overOutput(bytes) {
		r.reply(s, f.text, f.found)
	}
}

func cmdHGetAll(s *Session, args [][]byte) {
	s.readHash(args, func([][]byte) hashRead {
		return hashRead{func(string) bool { return true }, func(s *Session, fields [][2]string, _ bool) {
			s.replyMap(len(fields))
			s.replyPairs(fields)
		}}
	})
}

// cmdHScan returns all fields at once, whatever COUNT says, as Redis does with a small hash.
func cmdHScan(s *Session, args [][]byte) {
	if _, ok := command.ParseDigits(args[2]); !ok {
		s.replyError(errInvalidCursor)
		return
	}
	s.readHash(args, func(args [][]byte) hashRead {
		o := scanOptions{}
		text := o.parse(args[3:])
		if o.typed {
			text = cmp.Or(text, errSyntax)
		}
		return hashRead{func(name string) bool { return text == "" && o.matches(name) }, func(s *Session, fields [][2]string, found bool) {
			if found && text != "" {
				s.replyError("%s", text)
				return
			}
			s.replyArray(2)
			s.replyString("0")
			s.replyArray(2 * len(fields))
			s.replyPairs(fields)
		}}
	})
}

func cmdHGet(s *Session, args [][]byte) {
	s.readHash(args, func(args [][]byte) hashRead {
		return hashRead{func(name string) bool { return name == string(args[2]) }, func(s *Session, fields [][2]string, _ bool) {
			if len(fields) == 0 {
				s.replyNull()
			} else {
				s.replyString(fields[0][1])
			}
		}}
	})
}

func cmdHLen(s *Session, args [][]byte) {
	n := int64(0)
	if _, err := s.store().Limits(args[1], s.access(), func(*store.LimitState) { n++ }); err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyInt(n)
}

// cmdHSet accepts the fields that HGETALL shows. redis-cli --pipe sends HSET from an append-only file, and Redis's tools copy keys
// by it.
func cmdHSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.replyError(errArity, "hset")
		return
	}
	keys, bytes := s.store(), 0
	for _, arg := range args {
		bytes += len(arg)
	}
	if bytes < asideBytes || !s.mayGoAside() {
		putFields(keys, args)(s)
		return
	}
	s.goAside(args, func(args [][]byte) func() func(*Session) {
		return func() func(*Session) { return putFields(keys, args) }
	})
}

// putFields reads fields, and returns what puts them under their key and replies.
func putFields(keys *memory.Store, args [][]byte) func(*Session) {
	var fields store.Fields
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		field, err := keys.ParseField(string(rest[0]), string(rest[1]))
		if errors.Is(err, store.ErrNoPolicy) {
			return func(s *Session) { s.replyError(errNoPolicy, shortText(rest[0][1:])) }
		}
		if err != nil {
			return func(s *Session) { s.replyError(errHashField, shortText(rest[0])) }
		}
		fields = append(fields, field)
	}
	return func(s *Session) {
		added, err := s.store().PutFields(args[1], fields, true, s.access())
		if err != nil {
			s.replyStoreError(err)
			return
		}
		s.replyInt(int64(added))
	}
}
