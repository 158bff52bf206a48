package resp

import (
	"sync/atomic"

	"celld/resp/client"
)

// running is the script that runs, as other connections know it. Its zero value is none.
type running struct {
	atomic.Pointer[runningScript]
}

// by reports whether a client's script runs.
func (r *running) by(c *client.Client) bool {
	script := r.Load()
	return script != nil && script.client == c
}

// runningScript is what may be asked of a script from outside.
type runningScript struct {
	client  *client.Client // whose it is
	startNS int64
	fate    atomic.Int32
}

// The fate of a script is set once. One that has written cannot be killed, and a killed one cannot write.
const (
	hasWritten int32 = 1 + iota
	isKilled
)
