package memtest

import "celld/store/memory/shard"

// SetLimitsNow is SetLimits, and then Shrink until nothing is left to remove.
func SetLimitsNow(s *shard.Capacity, maxKeys, maxBytes int64, noEviction bool) {
	s.SetLimits(maxKeys, maxBytes, noEviction)
	for s.Shrink() { //nolint:revive // it does all
	}
}

// SetMaxKeys, SetMaxBytes and SetNoEviction are SetLimitsNow that leaves the others as they are. 0 keys are a million.
func SetMaxKeys(s *shard.Capacity, n int64) {
	if n <= 0 {
		n = 1_000_000
	}
	SetLimitsNow(s, n, s.WantBytes, s.Room.NoEviction.Load())
}

func SetMaxBytes(s *shard.Capacity, n int64) {
	SetLimitsNow(s, s.WantKeys, n, s.Room.NoEviction.Load())
}

func SetNoEviction(s *shard.Capacity, on bool) { SetLimitsNow(s, s.WantKeys, s.WantBytes, on) }
