package resp

import (
	"crypto/rand"
	"encoding/hex"
)

// instance tells this run of celld from others.
type instance struct {
	version string
	bornNS  int64
	runID   string // 40 random hex digits
}

func newInstance(version string, nowNS int64) instance {
	var b [20]byte
	rand.Read(b[:])
	return instance{version, nowNS, hex.EncodeToString(b[:])}
}
