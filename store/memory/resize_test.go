package memory

// SetLimitsNow is SetLimits, and then Shrink until nothing is left to remove.
func (s *Store) SetLimitsNow(maxKeys, maxBytes int64, noEviction bool) {
	s.SetLimits(maxKeys, maxBytes, noEviction)
	for s.Shrink() { //nolint:revive // it does all
	}
}

// SetMaxKeys, SetMaxBytes and SetNoEviction are SetLimitsNow that leaves the others as they are. No keys are the default.
func (s *Store) SetMaxKeys(n int64) {
	if n <= 0 {
		n = defaultMaxKeys
	}
	_, bytes, noEviction := s.limitsNow()
	s.SetLimitsNow(n, bytes, noEviction)
}

func (s *Store) SetMaxBytes(n int64) {
	keys, _, noEviction := s.limitsNow()
	s.SetLimitsNow(keys, n, noEviction)
}

func (s *Store) SetNoEviction(on bool) {
	keys, bytes, _ := s.limitsNow()
	s.SetLimitsNow(keys, bytes, on)
}

func (s *Store) limitsNow() (maxKeys, maxBytes int64, noEviction bool) {
	s.Resize.Mu.Lock()
	defer s.Resize.Mu.Unlock()
	return s.Resize.WantKeys, s.Resize.WantBytes, s.Room.NoEviction.Load()
}

// ShardOf is the number of the shard that a key is in.
func (s *Store) ShardOf(key string) int { return s.ShardIndex(s.Hash([]byte(key))) }
