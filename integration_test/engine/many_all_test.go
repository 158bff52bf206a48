//go:build all

package engine

import (
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// The limit of TestManyProcesses, which slow machines use up, too. Its burst flows back in 3 s, so a pause of the machine loses
// nothing of it.
const (
	manyBurst = 600
	manyRate  = 200 // a second
)

// crowd holds the answers to processes with 3 clients each, which ask one key for more than its limit.
type crowd struct {
	processes int

	mu                           sync.Mutex
	passed, denied, failed       int
	firstSent, firstGot, lastGot time.Time
	lastSent                     time.Time
	away                         time.Duration // for how long there was no master
}

func (c *crowd) note(sent, got time.Time, is outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch is {
	case passed:
		c.passed++
	case denied:
		c.denied++
	default:
		c.failed++
		return
	}
	if c.firstGot.IsZero() || got.Before(c.firstGot) {
		c.firstGot = got
	}
	if c.firstSent.IsZero() || sent.Before(c.firstSent) {
		c.firstSent = sent
	}
	if got.After(c.lastGot) {
		c.lastGot = got
	}
	if sent.After(c.lastSent) {
		c.lastSent = sent
	}
}

// ask starts the clients. They ask while it calls during, and for d after that: each 60 times a second.
func (c *crowd) ask(t *testing.T, url, timeout, command string, d time.Duration, during func()) {
	t.Helper()
	const clients = 3
	var running sync.WaitGroup
	var conns []*harness.Conn
	for range c.processes {
		srv := harness.Start(t, "--store", url, "--store-timeout", timeout)
		for range clients {
			conn := harness.Dial(t, srv.Addr)
			conn.Do(strings.Fields(strings.Replace(command, " k ", " other ", 1))...) // all is connected then
			conns = append(conns, conn)
		}
	}
	words, end := strings.Fields(command), make(chan struct{})
	for _, conn := range conns {
		running.Go(func() {
			pace := time.NewTicker(15 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-end:
					return
				case <-pace.C:
				}
				sent := time.Now()
				raw, err := conn.TryDo(words)
				is := outcomeOf(raw)
				c.note(sent, time.Now(), is)
				if err != nil || is == strange {
					t.Errorf("%q, %v", raw, err)
					return
				}
			}
		})
	}
	during()
	time.Sleep(d)
	close(end)
	running.Wait()
}

// check compares what they got with the limit. least is the share that they must have got.
func (c *crowd) check(t *testing.T, least float64) {
	t.Helper()
	most := manyBurst + manyRate*c.lastGot.Sub(c.firstSent).Seconds()
	saturated := manyBurst + manyRate*(c.lastSent.Sub(c.firstGot)-c.away).Seconds()
	t.Logf("%d granted, %d denied, %d failed in %v: %.4f of the limit", c.passed, c.denied, c.failed,
		c.lastGot.Sub(c.firstSent).Round(time.Millisecond), float64(c.passed)/most)
	if is := float64(c.passed); is > most || is < least*saturated {
		t.Errorf("%.0f granted, want %.0f to %.0f", is, least*saturated, most)
	}
}

// TestManyProcesses runs 20 processes that share one key: the sum is the limit's.
func TestManyProcesses(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
		for _, command := range []string{"CL.THROTTLE k 599 200 1", "CL.TAKE k 200/1s,burst=600"} {
			t.Run(command, func(t *testing.T) {
				c := crowd{processes: 20}
				c.ask(t, e.Alone(t).URL, "20s", command, 4*time.Second, func() {})
				if c.failed > 0 {
					t.Errorf("%d calls failed", c.failed)
				}
				c.check(t, 0.98)
			})
		}
	})
}

// TestManyProcessesKilledMaster kills the key's master meanwhile. The new one has all that was answered, or nearly so: what it lacks could
// be granted twice.
func TestManyProcessesKilledMaster(t *testing.T) {
	for _, kind := range engines.Kinds[1:] {
		t.Run(kind.Name, func(t *testing.T) {
			engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
				f := kind.Start(e, t)
				c := crowd{processes: 10}
				c.ask(t, f.URL, "500ms", "CL.THROTTLE k 599 200 1", 3*time.Second, func() {
					celldtest.Eventually(t, "its burst is spent", func() bool {
						c.mu.Lock()
						defer c.mu.Unlock()
						return c.denied > 0
					})
					master, killed := f.MasterOf("k"), time.Now()
					master.Kill()
					f.MasterOf("k") // the next one
					c.away = time.Since(killed)
				})
				if c.failed == 0 {
					t.Error("nobody has noticed")
				}
				c.check(t, 0.5)
			})
		})
	}
}
