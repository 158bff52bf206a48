package shard_test

import "celld/store/memory/memtest"

const (
	t0           = memtest.T0
	second int64 = 1_000_000_000
	hour         = 3600 * second
)
