package resp

import (
	"cmp"
	"errors"
	"slices"

	"celld/store"
)

// Tools see a key that holds limits as a hash. A field is the name of a limit, and its value is what is used of that limit.

// fields returns the names of a key's limits, each with what is used of it. It answers an error, and ok is false, where the key
// holds no limits.
func (s *Session) fields(key []byte) (fields [][2]string, found, ok bool) {
	found, err := s.store().Limits(key, s.access(), func(l *store.LimitState) {
		fields = append(fields, [2]string{string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))})
	})
	if err != nil {
		s.replyStoreError(err)
	}
	return fields, found, err == nil
}

func cmdHGetAll(s *Session, args [][]byte) {
	if fields, _, ok := s.fields(args[1]); ok {
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
	fields, found, ok := s.fields(args[1])
	if !ok {
		return
	}
	o := scanOptions{}
	if text := o.parse(args[3:]); found && (text != "" || o.typed) {
		s.replyError("%s", cmp.Or(text, errSyntax))
		return
	}
	fields = slices.DeleteFunc(fields, func(f [2]string) bool { return !o.matches(f[0]) })
	s.replyArray(2)
	s.replyString("0")
	s.replyArray(2 * len(fields))
	s.replyPairs(fields)
}

func cmdHGet(s *Session, args [][]byte) {
	fields, _, ok := s.fields(args[1])
	at := slices.IndexFunc(fields, func(f [2]string) bool { return f[0] == string(args[2]) })
	switch {
	case !ok:
	case at < 0:
		s.replyNull()
	default:
		s.replyString(fields[at][1])
	}
}

func cmdHLen(s *Session, args [][]byte) {
	if fields, _, ok := s.fields(args[1]); ok {
		s.replyInt(int64(len(fields)))
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
