package resp

import "slices"

// contentWatch is a key that WATCH has found with some content on the engine. EXEC has it in its view.
type contentWatch struct {
	s           *Session
	key, digest []byte
}

// watch begins to observe a key.
func (s *Session) watch(key []byte) watch {
	if v := s.scratch.visit; v != nil {
		key = slices.Clone(key)
		return &contentWatch{s, key, v.view.Digest(key)}
	}
	return s.srv.store.Watch(key, s.nowNS)
}

// Changed and Stop are those of store.Watch.
func (w *contentWatch) Changed(int64) bool {
	return !w.s.scratch.visit.view.Still(w.key, w.digest)
}
func (w *contentWatch) Stop() {}
