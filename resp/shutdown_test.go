package resp

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/resp/gate"
)

// TestAwaitStop sends signals and commands at instants, and sees when the server is to stop.
func TestAwaitStop(t *testing.T) {
	const second = time.Second
	type event struct {
		at   time.Duration
		what string // a command of a client, else a signal's name
	}
	for _, test := range []struct {
		name, delay string
		loading     bool
		events      []event
		stops       time.Duration
		logs        string
	}{
		{"no delay", "0", false, []event{{second, "TERM"}}, second, ""},
		{"SIGTERM", "5", false, []event{{second, "TERM"}}, 6 * second, "signal=terminated delay=5s"},
		{"SIGINT", "5", false, []event{{second, "INT"}}, 6 * second, "signal=interrupt delay=5s"},
		{"a second signal", "5", false, []event{{second, "TERM"}, {2 * second, "TERM"}}, 2 * second, "a second signal ends"},
		{"another signal", "5", false, []event{{second, "TERM"}, {2 * second, "INT"}}, 2 * second, "a second signal ends"},
		{"SHUTDOWN", "5", false, []event{{second, "SHUTDOWN NOSAVE"}}, second, "a client asked"},
		{"SHUTDOWN meanwhile", "5", false, []event{{second, "TERM"}, {2 * second, "SHUTDOWN NOW"}}, 2 * second, "a client asked"},
		{"ABORT", "5", false, []event{{second, "TERM"}, {2 * second, "SHUTDOWN ABORT"}, {20 * second, "INT"}}, 25 * second, "a client aborted the shutdown"},
		{"a setting that has changed", "0", false, []event{{second, "CONFIG SET shutdown-delay 7"}, {2 * second, "TERM"}}, 9 * second, "delay=7s"},
		{"a setting that changes too late", "5", false, []event{{second, "TERM"}, {2 * second, "CONFIG SET shutdown-delay 0"}}, 6 * second, "delay=5s"},
		{"loading", "5", true, []event{{second, "TERM"}}, second, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "shutdown-delay", test.delay)
				w.sessions.Gate.Set(gate.Loading, test.loading)
				began := time.Now()
				signals := make(chan os.Signal, 1)
				stopped := make(chan time.Duration, 1)
				go func() {
					w.AwaitStop(signals)
					stopped <- time.Since(began)
				}()
				c := w.connect()
				for _, e := range test.events {
					celldtest.Pass(e.at - time.Since(began))
					switch e.what {
					case "TERM":
						signals <- syscall.SIGTERM
					case "INT":
						signals <- syscall.SIGINT
					default:
						if got := c.do(strings.Fields(e.what)...); got != "+OK\r\n" && got != "" {
							t.Errorf("%s: %q", e.what, got)
						}
					}
					synctest.Wait()
				}
				if got := <-stopped; got != test.stops {
					t.Errorf("stops after %v, want %v", got, test.stops)
				}
				if !strings.Contains(w.log.String(), test.logs) {
					t.Errorf("no %q in the log:\n%s", test.logs, w.log)
				}
			})
		})
	}
}

// A server that ends waits until its engine has what the sessions held, and what is given back meanwhile, but not longer than the shutdown
// time-out.
func TestTheEngineHasWhatSessionsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := engineWorld(t, false)
		looks := 0
		e.Drained = func(context.Context) bool { looks++; return looks != 1 }
		w.sessions.Later.GiveBack(func() { time.Sleep(time.Second) })
		began := time.Now()
		w.drainLimiter(w.sessions.Clock() + 10e9)()
		if took := time.Since(began).Round(10 * time.Millisecond); took != time.Second || w.log.String() != "" {
			t.Errorf("it took %v, and the log says %q", took, w.log)
		}
		e.Drained = func(ctx context.Context) bool { <-ctx.Done(); return false }
		began = time.Now()
		w.drainLimiter(w.sessions.Clock() + 3e9)()
		if took := time.Since(began); took != 3*time.Second || !strings.Contains(w.log.String(), "not given back in time") {
			t.Errorf("it took %v, and the log says %q", took, w.log)
		}
	})
}
