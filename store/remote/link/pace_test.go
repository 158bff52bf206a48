package link

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// With Sentinels, connections to a node that refuses them, or that closes them at once, are a quarter of a second apart. Without, they are
// made at once, and so are those to other nodes.
func TestPace(t *testing.T) {
	for _, refuses := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dialed := map[string]int{}
			l := New(Options{URL: "redis://a,b?master=m", Dial: func(_ context.Context, to string) (net.Conn, error) {
				dialed[to]++
				if refuses {
					return nil, errors.New("refused")
				}
				ours, _ := net.Pipe()
				return ours, nil
			}})
			defer l.Close()
			dial := func(to string) {
				if conn, err := l.Dial(t.Context(), to, nil, nil); err == nil {
					conn.Close()
				}
			}
			for _, master := range []string{"", "m"} {
				l.address.Master = master
				clear(dialed)
				for began := time.Now(); time.Since(began) < time.Second && dialed["a"] < 1000; {
					dial("a")
				}
				if n, want := dialed["a"], map[string]int{"": 1000, "m": 5}[master]; n != want {
					t.Errorf("refuses %v, master %q: %d connections in a second, want %d", refuses, master, n, want)
				}
			}
			began := time.Now()
			if dial("b"); time.Since(began) != 0 {
				t.Errorf("it waits %s for another node", time.Since(began))
			}
		})
	}
}

// A Link that is closed does not wait for the pace.
func TestPaceOfAClosedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
		l := New(Options{URL: "redis://a?master=m", Dial: refuse})
		l.address.Master = "m"
		_, _ = l.Dial(t.Context(), "a", nil, nil)
		l.Close()
		began := time.Now()
		if _, err := l.Dial(t.Context(), "a", nil, nil); !errors.Is(err, net.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
