package session

import (
	"slices"
	"sync"
	"testing"
	"time"

	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

// Calls that wait pass one after the other, each when its time has come, and nobody else is held up.
func TestCallsTakeTurns(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
		const interval = 50 * time.Millisecond
		const call = "CL.TAKE k 1/50ms,burst=1 WAIT 60000\r\n"
		first, other := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		begin := time.Now()
		first.Ask(call, "*7\r\n:0\r\n:1\r\n")
		var took [5]time.Duration
		var all sync.WaitGroup
		for i := range took {
			c := sessiontest.Dial(t, addr)
			c.Send(call + "PING\r\n")
			all.Go(func() {
				for range 8 {
					if _, err := c.ReadString('\n'); err != nil {
						t.Error(err)
					}
				}
				took[i] = time.Since(begin)
				c.Ask("", "+PONG\r\n")
			})
			other.Ask("PING\r\n", "+PONG\r\n")
		}
		all.Wait()
		slices.Sort(took[:])
		for i := range took {
			if least := time.Duration(i+1) * interval; took[i] < least {
				t.Errorf("%d passed after %v, want %v at least", i, took[i], least)
			}
		}
		if n, keys := srv.Store.Waiting(); n != 0 || keys != 0 {
			t.Errorf("%d wait for %d keys", n, keys)
		}
	})
}

// A wait that is over, or known to be too long, is a denial; too many who wait are an error.
func TestWaitsThatEnd(t *testing.T) {
	carrierTest{settings: []string{"max-waiters", "1"}}.run(t, func(t *testing.T, srv *Service, addr string) {
		c, waits := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
		c.Ask("CL.TAKE k 1/24h,algo=log\r\n", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:86400000\r\n:1\r\n:0\r\n")
		c.Ask("CL.TAKE k 1/24h,algo=log WAIT 10\r\n", "*7\r\n:1\r\n")
		for range 6 {
			_, _ = c.ReadString('\n')
		}
		c.Ask("CL.TAKE r 1/1m,burst=1\r\nCL.TAKE r 1/1m,burst=1 WAIT 0 US\r\n",
			"*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n*7\r\n:1\r\n")
		for range 6 {
			_, _ = c.ReadString('\n')
		}
		c.Ask("CL.TAKE r 1/1m,burst=1 RESERVE 60000 COST 1\r\n", "*7\r\n:0\r\n")
		for range 6 {
			_, _ = c.ReadString('\n')
		}
		c.Ask("CL.TAKE g 1/1m,burst=1\r\n", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n")
		waits.Send("CL.TAKE g 1/1m,burst=1 WAIT 60000\r\n")
		eventually(t, "queue", func() bool { n, _ := srv.Store.Waiting(); return n == 1 })
		c.Ask("CL.TAKE r2 1/1m,burst=1 WAIT 60000\r\n", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n")
		c.Ask("CL.TAKE r2 1/1m,burst=1 WAIT 60000\r\n", "-"+door.ErrMaxWaiters+"\r\n")
		c.Ask("DEL g\r\n", ":1\r\n")
		waits.Ask("", "*7\r\n:0\r\n:1\r\n")
	})
}
