package memtest

import "celld/store/memory/shard"

// SetCapacityNow is SetCapacity, and then Shrink until nothing is left to remove.
func SetCapacityNow(s *shard.Capacity, maxKeys, maxBytes int64, noEviction bool) {
	s.SetCapacity(maxKeys, maxBytes, noEviction)
	for s.Shrink() { //nolint:revive // it does all
	}
}

// SetMaxKeys is SetCapacityNow that leaves the rest as it is, as are SetMaxBytes and SetNoEviction. 0 keys are a million.
func SetMaxKeys(s *shard.Capacity, n int64) {
	if n <= 0 {
		n = 1_000_000
	}
	SetCapacityNow(s, n, s.WantBytes, s.Room.NoEviction.Load())
}

func SetMaxBytes(s *shard.Capacity, n int64) {
	SetCapacityNow(s, s.WantKeys, n, s.Room.NoEviction.Load())
}

func SetNoEviction(s *shard.Capacity, on bool) { SetCapacityNow(s, s.WantKeys, s.WantBytes, on) }
