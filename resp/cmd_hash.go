package resp

import (
	"cmp"
	"errors"
	"slices"

	"celld/store"
)

// To tools a key that holds limits is a hash: of their names to what is used of them.

func cmdHGetAll(s *Session, args [][]byte) {
	var fields [][2]string
	_, err := s.srv.store.Limits(args[1], s.access(), func(l *store.LimitState) {
		fields = append(fields, [2]string{string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))})
	})
	if err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyMap(len(fields))
	for _, f := range fields {
		s.replyPair(f[0], f[1])
	}
}

// cmdHScan returns all fields at once, whatever COUNT says, as Redis does with a small hash.
func cmdHScan(s *Session, args [][]byte) {
	if _, ok := parseDigits(args[2]); !ok {
		s.replyError(errInvalidCursor)
		return
	}
	var fields [][2]string
	found, err := s.srv.store.Limits(args[1], s.access(), func(l *store.LimitState) {
		fields = append(fields, [2]string{string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))})
	})
	if err != nil {
		s.replyStoreError(err)
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
	for _, f := range fields {
		s.replyPair(f[0], f[1])
	}
}

func cmdHGet(s *Session, args [][]byte) {
	var value []byte
	found := false
	_, err := s.srv.store.Limits(args[1], s.access(), func(l *store.LimitState) {
		if string(l.AppendName(nil)) == string(args[2]) {
			value, found = l.Limit.AppendState(nil, &l.State), true
		}
	})
	switch {
	case err != nil:
		s.replyStoreError(err)
	case !found:
		s.replyNull()
	default:
		s.replyBulk(value)
	}
}

func cmdHLen(s *Session, args [][]byte) {
	n := int64(0)
	if _, err := s.srv.store.Limits(args[1], s.access(), func(*store.LimitState) { n++ }); err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyInt(n)
}

// cmdHSet takes what HGETALL shows: redis-cli --pipe sends an append-only file's, and Redis's tools copy keys by it.
func cmdHSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.replyError(errArity, "hset")
		return
	}
	var fields store.Fields
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		field, err := s.srv.store.ParseField(string(rest[0]), string(rest[1]))
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
	added, err := s.srv.store.PutFields(args[1], fields, true, s.access())
	if err != nil {
		s.replyStoreError(err)
		return
	}
	s.replyInt(int64(added))
}
