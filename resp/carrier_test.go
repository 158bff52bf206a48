package resp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/client"
	"celld/resp/clock"
	"celld/resp/command"
	"celld/resp/config"
	"celld/resp/sessiontest"
	"celld/resp/transport"
	"celld/resp/wire"
	"celld/store/memory"
)

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
	later    bool     // the limiter is a storetest.Later
	log      *slog.Logger
	rows     []*command.Row // besides those of the table
	prepare  func(*Server)
}

func (o carrierTest) run(t *testing.T, test func(t *testing.T, srv *Server, addr string)) {
	files := o.files
	for name, goroutines := range map[string]bool{multiplexing(): false, "goroutines": true} {
		t.Run(name, func(t *testing.T) {
			if files == nil { // else they share it
				t.Parallel()
			}
			cfg := config.New()
			for setting, value := range map[string]string{"port": "0", "bind": "127.0.0.1", "io-threads": "2", "client-output-buffer-limit": "128kb"} {
				if err := cfg.Setting(setting).Value.Set(value); err != nil {
					t.Fatal(err)
				}
			}
			for i := 0; i < len(o.settings); i += 2 {
				if err := cfg.Setting(o.settings[i]).Value.Set(o.settings[i+1]); err != nil {
					t.Fatal(err)
				}
			}
			disk := cfg.Persistence()
			disk.Dir, disk.Files, disk.AppendOnly, disk.Fsync = t.TempDir(), files, files != nil, persistence.Always
			disk.Clock, disk.Log = clock.New().NowNS, slog.New(slog.DiscardHandler)
			real, skewNS := disk.Clock, &atomic.Int64{}
			disk.Clock = func() int64 { return real() + skewNS.Load() }
			keys := memory.New(memory.Options{Journal: files != nil, Now: disk.Clock})
			srv := NewServer(Options{Config: cfg, Store: keys, Log: o.log, Clock: disk.Clock, Persistence: persistence.New(keys, disk)})
			srv.stopping.exit = func(code int) { panic(fmt.Sprint("exit ", code)) } // which shows why, as the log is thrown away
			skews.Store(srv, skewNS)
			if o.later {
				answersLater(srv)
			}
			if o.prepare != nil {
				o.prepare(srv)
			}
			for _, row := range o.rows {
				own := *row // each server counts its calls by itself
				srv.commands.Add(&own)
			}
			listeners, err := srv.Listen()
			if err != nil {
				t.Fatal(err)
			}
			loops := int(cfg.IOThreads.Get())
			if goroutines {
				loops = 0
			}
			tr, err := transport.New(srv.Carried(), transport.Options{Loops: loops, Sync: srv.synchronous})
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
				if n := srv.clients.Count(); n != 0 {
					t.Errorf("%d clients are left", n)
				}
			})
			test(t, srv, listeners[0].Addr().String())
		})
	}
}

func TestCarriersAnswer(t *testing.T) {
	eachCarrier(t, func(t *testing.T, _ *Server, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Ask("PING\r\n", "+PONG\r\n")
		c.Ask(strings.Repeat("PING\r\n", 20_000), strings.Repeat("+PONG\r\n", 20_000))
		payload := strings.Repeat("x", 60_000)
		c.Ask(sessiontest.Frame("ECHO", payload), "$60000\r\n"+payload+"\r\n")
		c.Ask("QUIT\r\n", "+OK\r\n")
		c.WantClosed()
		c = sessiontest.Dial(t, addr)
		c.Ask("*1\r\n$-2\r\n", "-"+string(wire.ErrBulkLen)+"\r\n")
		c.WantClosed()
	})
}

// What comes about on another connection reaches this one: a monitor's lines, and its end.
func TestCarriersWake(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		m, c := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		m.Ask("MONITOR\r\n", "+OK\r\n")
		for i := range 200 {
			c.Ask(sessiontest.Frame("ECHO", "hi"), "$2\r\nhi\r\n")
			line, err := m.ReadString('\n')
			if err != nil || !strings.HasSuffix(line, "\"ECHO\" \"hi\"\r\n") {
				t.Fatalf("%d: %q, %v", i, line, err)
			}
		}
		c.Ask("CLIENT KILL TYPE normal\r\n", ":1\r\n")
		m.WantClosed()
		c.Ask("PING\r\n", "+PONG\r\n")
	})
}

// A peer that sends and does not read is closed at the limit, or has its own goroutine wait for it; nobody else does.
func TestCarriersDeafPeer(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		deaf, c := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		eventually(t, "end of the peer, or one who waits for it", func() bool {
			_ = deaf.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			n, _ := io.WriteString(deaf, strings.Repeat("COMMAND DOCS\r\n", 50_000))
			c.Ask("PING\r\n", "+PONG\r\n")
			waits := slices.ContainsFunc(srv.clients.All(), func(c *client.Client) bool { return c.Unsent.Load() > 0 })
			return srv.stats.OutputLimitCloses.Load() > 0 || n == 0 && waits
		})
	})
}
