package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/persistence/dir"
	"celld/resp/client"
	"celld/resp/clock"
	"celld/resp/command"
	"celld/resp/door"
	"celld/resp/loglimit"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
	"celld/resp/transport"
	"celld/resp/wire"
	"celld/store/memory"
)

// eachCarrier runs a test over real sockets, with the carrier of this system and with that of any.
func eachCarrier(t *testing.T, test func(t *testing.T, srv *Service, addr string)) {
	eachCarrierOn(t, nil, test)
}

// eachCarrierOn does so on a file system, with an append-only file that replies wait for; nil is no file.
func eachCarrierOn(t *testing.T, files dir.FileSystem, test func(t *testing.T, srv *Service, addr string)) {
	carrierTest{files: files}.run(t, test)
}

// carry serves until the test ends, and returns the address.
func carry(t *testing.T, srv *Service, loops int) (addr string) {
	t.Helper()
	tr, err := transport.New(srv.Carried(), transport.Options{Loops: loops, Sync: srv.Synchronous})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if srv.Persist.On() {
		if _, err := srv.Persist.Load(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Persist.Start(tr.Background, srv.Between); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { tr.Accept(ctx, transport.Listener{Listener: ln}) })
	serving.Go(func() { // what a server does all the time
		for every := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-every.C {
			func() {
				defer srv.Survive("cron")
				srv.Persist.Tick()
				srv.WakeIdle()
			}()
		}
	})
	t.Cleanup(func() {
		stop()
		ln.Close()
		srv.RefuseWaiting()
		srv.Ending.Store(true)
		serving.Wait()
		srv.Persist.Stop()
		tr.Stop()
		srv.Later.Wait()
		if err := srv.Persist.Close(false); err != nil {
			t.Logf("the file is not closed: %v", err) // a disk is full
		}
		if n := srv.Clients.Count(); n != 0 {
			t.Errorf("%d clients are left", n)
		}
	})
	return ln.Addr().String()
}

// skews are how far the clocks of the servers of tests are ahead.
var skews sync.Map

func skew(srv *Service, by time.Duration) {
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
	prepare  func(*Service)
}

func (o carrierTest) run(t *testing.T, test func(t *testing.T, srv *Service, addr string)) {
	files := o.files
	for name, goroutines := range map[string]bool{"loops": false, "goroutines": true} {
		t.Run(name, func(t *testing.T) {
			if files == nil { // else they share it
				t.Parallel()
			}
			defaults := []string{"dir", t.TempDir(), "io-threads", "2", "client-output-buffer-limit", "128kb"}
			cfg := sessiontest.Settings(t, append(defaults, o.settings...)...)
			real, skewNS := clock.New().NowNS, &atomic.Int64{}
			now := func() int64 { return real() + skewNS.Load() }
			keys, disk := sessiontest.Keep(memory.Options{Now: now}, cfg, files, now, slog.New(slog.DiscardHandler))
			logged := cmp.Or(o.log, slog.New(slog.DiscardHandler))
			srv := New(Parts{Rows: serverRows, Scripts: sessiontest.Scripts, Parts: door.Parts{
				Config: cfg, Store: keys, Log: loglimit.New(logged, now), Clock: now, Persist: disk, Stats: stats.NewServer(),
				Exit: func(code int) { panic(fmt.Sprint("exit ", code)) }, // which shows why, as the log is thrown away
			}})
			skews.Store(srv, skewNS)
			if o.later {
				answersLater(srv)
			}
			if o.prepare != nil {
				o.prepare(srv)
			}
			for _, row := range o.rows {
				own := *row // each server counts its calls by itself
				srv.Commands.Add(&own)
			}
			loops := int(cfg.IOThreads.Get())
			if goroutines {
				loops = 0
			}
			addr := carry(t, srv, loops)
			test(t, srv, addr)
		})
	}
}

func TestCarriersAnswer(t *testing.T) {
	eachCarrier(t, func(t *testing.T, _ *Service, addr string) {
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
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
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
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
		deaf, c := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		eventually(t, "end of the peer, or one who waits for it", func() bool {
			_ = deaf.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			n, _ := io.WriteString(deaf, strings.Repeat("COMMAND DOCS\r\n", 50_000))
			c.Ask("PING\r\n", "+PONG\r\n")
			waits := slices.ContainsFunc(srv.Clients.All(), func(c *client.Client) bool { return c.Unsent.Load() > 0 })
			return srv.Stats.OutputLimitCloses.Load() > 0 || n == 0 && waits
		})
	})
}
