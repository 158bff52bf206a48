package resp

import (
	"cmp"
	"errors"

	"celld/store"
)

// Tools see a key that holds limits as a hash. A field is the name of a limit, and its value is what is used of that limit.

// fields returns the names of a key's limits that are asked for, each with what is used of it. It answers an error, and ok is false,
// where the key holds no limits, or leases lead to a key that the user may not read: what is used has that key's name.
func (s *Session) fields(key []byte, asked func(name string) bool) (fields [][2]string, found, ok bool) {
	a, refused := s.access(), error(nil)
	found, err := s.store().Limits(key, a, func(l *store.LimitState) {
		name := string(l.AppendName(nil))
		if refused != nil || !asked(name) {
			return
		}
		if refused = l.Reach(a.May, true, false); refused == nil {
			fields = append(fields, [2]string{name, string(l.Limit.AppendState(nil, &l.State))})
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		s.replyStoreError(err)
	}
	return fields, found, err == nil
}

func allFields(string) bool { return true }

func cmdHGetAll(s *Session, args [][]byte) {
	if fields, _, ok := s.fields(args[1], allFields); ok {
		s.replyMap(len(fields))
		s.replyPairs(fields)
	}
}

// cmdHScan returns all fields at once, whatever COUNT says, as Redis does with a small hash.
func cmdHScan(s *Session, args [][]byte) {
	if _, ok := parseDigits(args[2]); !ok {
		s.replyError(errInvalidCursor)
		return
	}
	o := scanOptions{}
	text := o.parse(args[3:])
	fields, found, ok := s.fields(args[1], o.matches)
	if !ok {
		return
	}
	if found && (text != "" || o.typed) {
		s.replyError("%s", cmp.Or(text, errSyntax))
		return
	}
	s.replyArray(2)
	s.replyString("0")
	s.replyArray(2 * len(fields))
	s.replyPairs(fields)
}

func cmdHGet(s *Session, args [][]byte) {
	fields, _, ok := s.fields(args[1], func(name string) bool { return name == string(args[2]) })
	switch {
	case !ok:
	case len(fields) == 0:
		s.replyNull()
	default:
		s.replyString(fields[0][1])
	}
}

func cmdHLen(s *Session, args [][]byte) {
	n := int64(0)
	if _, _, ok := s.fields(args[1], func(string) bool { n++; return false }); ok {
		s.replyInt(n)
	}
}

// cmdHSet accepts the fields that HGETALL shows. redis-cli --pipe sends HSET from an append-only file, and Redis's tools copy keys
// by it.
func cmdHSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.replyError(errArity, "hset")
		return
	}
	var fields store.Fields
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		field, err := s.store().ParseField(string(rest[0]), string(rest[1]))
		if errors.Is(err, store.ErrNoPolicy) {
			s.replyError(errNoPolicy, shortText(rest[0][1:]))
			return
		}
		if err != nil {
			s.replyError(errHashField, shortText(rest[0]))
			return
		}
		fields = append(fields, field)
	}
	added, err := s.store().PutFields(args[1], fields, true, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyInt(int64(added))
}
