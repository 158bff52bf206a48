package resp

import (
	"context"
	"sync"
	"sync/atomic"

	"celld/resp/door"
	"celld/resp/listen"
	"celld/resp/metrics"
	"celld/resp/reload"
	"celld/resp/session"
	"celld/resp/transport"
	"celld/resp/watch"
)

// Server serves clients. It does no network I/O itself: Listen and Serve do, and tests call sessions directly.
type Server struct {
	Door     *door.Door // that of the sessions, for those who do not ask in RESP
	sessions *session.Service
	sockets  *listen.Sockets
	carries  atomic.Pointer[transport.Transport] // nil: nothing is served yet
	reloads  reload.Reloader
	files    watch.Watcher
	upkeep   upkeep
	life     life

	instance instance
	metrics  *metrics.Registry // which renders what is measured
	others   []func(*metrics.List)
}

// upkeep is the state of the regular work.
type upkeep struct {
	readClocks   func() (wallNS, nowNS int64, ok bool)
	sweeping     atomic.Bool  // expired keys are being removed
	shrinking    atomic.Bool  // keys are being evicted, as there may be fewer than before
	clientsHold  atomic.Int64 // bytes of clients' buffers, as last passed to onMemory
	keysReported atomic.Int64 // those of keys, as last passed to it
	gaps         atomic.Int64 // bytes that keys may take less, as last passed to the store
	limiting     sync.Mutex   // held by limitKeys
	leastSpare   atomic.Int64 // see giveBack

	refused, refusedKeys int64                  // changes, when followRoom last looked
	fullNS               int64                  // when it found one last
	full                 atomic.Pointer[string] // the bound that refuses changes; nil: none does
}

// life is how far the server is on its way to its end.
type life struct {
	leaving    atomic.Bool  // it has been told to stop, and may serve on for --shutdown-delay
	saveAtExit atomic.Int32 // SHUTDOWN's option: saveIfOn, saveAlways, saveNever
	onStop     []func(context.Context)

	stopOnce sync.Once
	stop     chan struct{}
	mu       sync.Mutex
	atEnd    []func()      // of SHUTDOWN; guarded by mu
	aborts   chan struct{} // SHUTDOWN ABORT receives from it while a shutdown is delayed
}
