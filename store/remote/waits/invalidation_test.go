package waits

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// One listens for as long as somebody waits, tries again where that fails, and says so once.
func TestListeningThatFails(t *testing.T) {
	atADesk(t, func(d *desk) {
		var log lines
		d.s.waits.Log = log.log()
		n := &d.s.waits.invalidations
		n.ctx, n.close = context.WithCancel(context.Background())
		d.spend("k", tenSeconds)
		said := func() int { return strings.Count(log.String(), notSubscribed) }
		for i := range 2 {
			w := d.waits(time.Hour, d.call("k", tenSeconds))
			if d.all(); !n.listening || said() != i+1 {
				t.Errorf("%d: it listens: %v, and says so %d times", i, n.listening, said())
			}
			d.sleep(4 * subscribeAgain)
			if synctest.Wait(); said() != i+1 || !strings.Contains(log.String(), "there is no connection to the engine") {
				t.Errorf("%d: the log says\n%s", i, log.String())
			}
			d.s.Leave(&w.reqs[0], nil)
			d.sleep(subscribeAgain)
			if synctest.Wait(); n.listening {
				t.Errorf("%d: it listens for nobody", i)
			}
		}
		w := d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		d.s.waits.Close()
		d.sleep(subscribeAgain) // which it pauses after an error
		if synctest.Wait(); n.listening {
			t.Error("it listens though it is closed")
		}
		if d.s.waits.needsInvalidations() {
			t.Error("it would listen")
		}
		d.s.Leave(&w.reqs[0], nil)
	})
}

// Listening stops when nobody has waited for a while, and looks for that again and again.
func TestListeningStopsWhenQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStore(t, "", nil).waits
		var stops atomic.Int32
		after := func(d time.Duration) int32 {
			celldtest.Pass(d)
			return stops.Load()
		}
		_, over := w.pretend()
		w.stopWhenQuiet(t.Context(), func() { stops.Add(1) })
		if after(3*quietFor+1) != 0 {
			t.Error("it stops while somebody waits")
		}
		over()
		if after(quietFor-2) != 0 || after(1) != 1 || after(10*quietFor) != 1 {
			t.Errorf("it stops %d times", stops.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		w.stopWhenQuiet(ctx, func() { stops.Add(1) })
		if cancel(); after(2*quietFor) != 1 {
			t.Error("it stops what has ended")
		}
	})
}

// A waiter hears that a policy or a rule has changed, and reads both. A connection that breaks is an error, and one that is not needed is
// not.
func TestInvalidationsOfSettings(t *testing.T) {
	all := testStores(t, 2)
	s, other := all[0], all[1]
	s.plainly(t, 1, takeCall(t, "k", "1/1h"))
	w := s.await(t, 24*time.Hour, 1, takeCall(t, "k", "1/1h"))
	s.waitFor(t, 1)
	celldtest.Eventually(t, "it listens", func() bool {
		text, _ := other.do(t, "PUBSUB", "CHANNELS", "celld:wake").AsStrSlice()
		return len(text) == 1
	})
	setPolicyOf(t, other, "p", "5/1s", policy.Options{})
	celldtest.Eventually(t, "it has the policy", func() bool { return s.policies.PolicyNamed("p") != nil })
	if _, err := linktest.Told(t, func(done func(bool, error)) { other.settings.PutRule(policy.Rule{Pattern: "r"}, 0, done) }); err != nil {
		t.Fatal(err)
	}
	celldtest.Eventually(t, "it has the rule", func() bool { return s.policies.HasRules() })
	s.Leave(&w.reqs[0], nil)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.waits.receiveSome(ctx); err != nil {
		t.Errorf("what is not needed: %v", err)
	}
	other.link.Client().Close()
	if err := other.waits.receiveSome(t.Context()); err == nil {
		t.Error("a connection that is closed is no error")
	}
	other = newStore(t, "", nil)
	if err := other.waits.receiveSome(t.Context()); !linktest.IsDown(err) {
		t.Errorf("no connection: %v", err)
	}
}

// Listening ends also while a script keeps the engine busy: then Redis answers -BUSY to UNSUBSCRIBE, which rueidis does not expect.
func TestListeningEndsWhileTheEngineIsBusy(t *testing.T) {
	all := testStores(t, 2)
	s, other := all[0], all[1]
	other.do(t, "CONFIG", "SET", "lua-time-limit", "1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.waits.receiveSome(ctx) }()
	celldtest.Eventually(t, "it listens", func() bool {
		text, _ := other.do(t, "PUBSUB", "CHANNELS", "celld:wake").AsStrSlice()
		return len(text) == 1
	})
	busy := make(chan struct{})
	go func() {
		client := other.link.Client()
		client.Do(context.Background(), client.B().Eval().Script("while true do end").Numkeys(0).Build())
		close(busy)
	}()
	client := s.link.Client()
	celldtest.Eventually(t, "the engine is busy", func() bool {
		err := client.Do(t.Context(), client.B().Ping().Build()).Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	celldtest.Eventually(t, "the script ends", func() bool {
		_ = client.Do(t.Context(), client.B().ScriptKill().Build()).Error()
		select {
		case <-busy:
			return true
		default:
			return false
		}
	})
}
