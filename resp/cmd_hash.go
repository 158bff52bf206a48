package resp

import "celld/store"

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
