package harness

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("again with: go test ./integration_test/%s -run '^%s$' -args -seed %d", filepath.Base(folder), t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}
