package resp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/persistence/dir"
	"celld/resp/clock"
	"celld/resp/command"
	"celld/resp/session/sessiontest"
	"celld/resp/transport"
	"celld/store/memory"
)

var eventually = celldtest.Eventually

// eachCarrier runs a test over real sockets, with the carrier of this system and with that of any.
func eachCarrier(t *testing.T, test func(t *testing.T, srv *Server, addr string)) {
	eachCarrierOn(t, nil, test)
}

// eachCarrierOn does so on a file system, with an append-only file that replies wait for; nil is no file.
func eachCarrierOn(t *testing.T, files dir.FileSystem, test func(t *testing.T, srv *Server, addr string)) {
	carrierTest{files: files}.run(t, test)
}

// skews are how far the clocks of the servers of tests are ahead.
var skews sync.Map

func skew(srv *Server, by time.Duration) {
	ns, _ := skews.Load(srv)
	ns.(*atomic.Int64).Add(int64(by))
}

// carrierTest says what a test's server is like. The zero value has no file and the real clock.
type carrierTest struct {
	files    dir.FileSystem
	settings []string // names and values
	log      *slog.Logger
	rows     []*command.Row // besides those of the table
	prepare  func(*Server)  // called before it serves; nil: nothing
}

func (o carrierTest) run(t *testing.T, test func(t *testing.T, srv *Server, addr string)) {
	files := o.files
	for name, goroutines := range map[string]bool{multiplexing(): false, "goroutines": true} {
		t.Run(name, func(t *testing.T) {
			if files == nil { // else they share it
				t.Parallel()
			}
			defaults := []string{"dir", t.TempDir(), "port", "0", "bind", "127.0.0.1", "io-threads", "2",
				"client-output-buffer-limit", "128kb"}
			cfg := sessiontest.Settings(t, append(defaults, o.settings...)...)
			real, skewNS := clock.New().NowNS, &atomic.Int64{}
			now := func() int64 { return real() + skewNS.Load() }
			keys, disk := sessiontest.Keep(memory.Options{Now: now}, cfg, files, now, slog.New(slog.DiscardHandler))
			srv := NewServer(Options{Config: cfg, Store: keys, Log: o.log, Clock: now, Persistence: disk, Scripts: sessiontest.Scripts,
				Exit: func(code int) { panic(fmt.Sprint("exit ", code)) }}) // which shows why, as the log is thrown away
			skews.Store(srv, skewNS)
			if o.prepare != nil {
				o.prepare(srv)
			}
			for _, row := range o.rows {
				own := *row // each server counts its calls by itself
				srv.sessions.Commands.Add(&own)
			}
			listeners, err := srv.Listen()
			if err != nil {
				t.Fatal(err)
			}
			loops := int(cfg.IOThreads.Get())
			if goroutines {
				loops = 0
			}
			tr, err := transport.New(srv.sessions.Carried(), transport.Options{Loops: loops, Sync: srv.sessions.Synchronous})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			var serving sync.WaitGroup
			ready := make(chan struct{})
			serving.Go(func() { _ = srv.serve(ctx, listeners, tr, func() { close(ready) }) })
			<-ready
			t.Cleanup(func() {
				stop()
				serving.Wait()
				if n := srv.sessions.Clients.Count(); n != 0 {
					t.Errorf("%d clients are left", n)
				}
			})
			test(t, srv, listeners[0].Addr().String())
		})
	}
}
