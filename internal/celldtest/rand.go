package celldtest

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

// Seed is the flag -seed: that of the random calls; 0 stands for a new one.
var Seed = flag.Uint64("seed", 0, "seed of the random calls; 0: a new one")

// NewRand returns a source of random calls and logs the seed that brings them back.
func NewRand(t testing.TB) *rand.Rand {
	seed := *Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: go test -run '^%s$' -args -seed %d", t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}
