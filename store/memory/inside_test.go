package memory

// Named is how many waiters can be joined.
func (s *Store) Named() (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.lock(0)
		n += len(sh.named)
		sh.unlock()
	}
	return n
}
