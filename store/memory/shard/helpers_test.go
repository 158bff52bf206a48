package shard_test

import "celld/store/memory/memtest"

const (
	t0           = memtest.T0
	second int64 = 1_000_000_000
	hour         = 3600 * second
)

type failer = memtest.Failer

// What the tests of this package share with others, under short names.
var (
	sweep       = memtest.Sweep
	drain       = memtest.Drain
	withoutDead = memtest.WithoutDead
	mustLimit   = memtest.MustLimit
	mustAllow   = memtest.MustAllow
	put         = memtest.Put
	mustPut     = memtest.MustPut
	contents    = memtest.Contents
	expectKeys  = memtest.ExpectKeys
	keys16      = memtest.Keys16
	heapBytes   = memtest.HeapBytes
	mustParse   = memtest.MustParse
	did         = memtest.Did
	mustAudit   = memtest.MustAudit
	calls       = memtest.Calls
	mustTake    = memtest.MustTake
	drained     = memtest.Drained
	replay      = memtest.Replay
	at          = memtest.At
	untouched   = memtest.Untouched
	live        = memtest.Live
	plain       = memtest.Plain
	limitText   = memtest.LimitText
	limitTexts  = memtest.LimitTexts
)
