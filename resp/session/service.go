package session

import (
	"sync"
	"sync/atomic"

	"celld/resp/client"
	"celld/resp/command/keys"
	"celld/resp/door"
	"celld/resp/metrics"
	"celld/resp/scripts"
	"celld/resp/stats"
)

// Service is what all sessions share.
type Service struct {
	door.Door
	space      keys.Space // all keys of an engine; nil: the keys are in the store
	newScripts func() scripts.Engine
	scripts    scripts.Engine // nil: none was needed yet. Used only while execution is held alone
	running    running
	listing    sync.Mutex // one long list is made at a time
	slowlog    *stats.Slowlog
	Heap       metrics.Heap
	Saved      func(setting string) // is told that the file of a setting was written
	scratches  sync.Pool            // where sessions that answer nothing leave theirs
}

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
