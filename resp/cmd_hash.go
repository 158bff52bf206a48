package resp

import (
	"errors"

	"celld/store"
)

// To tools a key that holds limits is a hash: of their names to what is used of them.

func cmdHGetAll(s *Session, args [][]byte) {
	var fields [][2]string
	_, err := s.srv.store.Limits(args[1], s.access(), func(l *store.LimitState) {
		fields = append(fields, [2]string{string(l.AppendName(nil)), string(l.Literal.AppendState(nil, &l.State))})
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
