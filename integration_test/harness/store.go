package harness

import (
	"fmt"
	"os"
	"sync/atomic"
)

// StoreVariable names an engine's URL. Every celld that Spec starts keeps its limits there then, each under a prefix of its own.
const StoreVariable = "TEST_STORE"

var stores atomic.Int64

// storeFlags returns the flags by which celld keeps its limits where StoreVariable says. Their prefix puts all keys in one slot of
// a Cluster, as calls of several keys need it.
func storeFlags() []string {
	url := os.Getenv(StoreVariable)
	if url == "" {
		return nil
	}
	// the last of a flag holds
	return []string{"--store", url, "--store-prefix", fmt.Sprintf("{%d-%d}:", os.Getpid(), stores.Add(1)), "--store-timeout", "20s",
		"--appendonly", "no", "--save", ""}
}
