package resp

import (
	"crypto/rand"
	"encoding/hex"

	"celld/resp/session"
)

// RedisVersion is the version of Redis whose replies celld gives. Clients that ask for a version get this one.
const RedisVersion = session.RedisVersion

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
