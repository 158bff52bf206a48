package remote

import (
	"sync"
	"time"
)

// clock bounds the engine's time between its answers.
type clock struct {
	fake func() int64 // for tests: the engine's time; nil: what it answers

	mu     sync.Mutex
	timeNS int64     // the engine's last TIME
	sent   time.Time // it was asked after this
	got    time.Time // and answered before this
}
