package engine

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/resp/wire"
	"celld/store"
	"celld/store/remote/link"
)

// A failover loses what the replica had not received, in both kinds of fleet.
func TestFailover(t *testing.T) {
	for _, o := range []enginetest.Options{
		{Kind: enginetest.Sentinel, Replicas: 2, Lag: 50 * time.Millisecond},
		{Kind: enginetest.Cluster, Replicas: 1, Lag: 50 * time.Millisecond},
		{Kind: enginetest.Cluster, Replicas: 1, Lag: 50 * time.Millisecond, Valkey: true, Notice: 100 * time.Millisecond},
	} {
		faulty(t, o, func(t *testing.T, e *enginetest.Engine, u *user) {
			u.leaves("k", 99)
			celldtest.Pass(time.Second)
			u.leaves("k", 98)
			u.leaves("k", 97) // which the replica does not get
			old := e.MasterOf("k")
			if !e.Failover(old) {
				t.Fatal("no replica can take over")
			}
			celldtest.Pass(o.Notice) // the old master goes on until it learns that
			if left := u.recovers("k", 3*time.Second); left != 98 {
				t.Errorf("%d left: the tail was not lost", left)
			}
			now := e.MasterOf("k")
			celldtest.Pass(10 * time.Second)
			u.leaves("k", 97)
			celldtest.Pass(time.Second)
			if now == old || !e.Failover(now) {
				t.Error("the old master is not a replica")
			}
			celldtest.Pass(time.Second)
			if left := u.recovers("k", 3*time.Second); left != 96 {
				t.Errorf("%d left after a failover in quiet", left)
			}
		})
	}
}

// A master dies, and a replica takes over by itself.
func TestNodeTimeout(t *testing.T) {
	for _, kind := range []enginetest.Kind{enginetest.Sentinel, enginetest.Cluster} {
		for name, fault := range map[string]func(*enginetest.Node) (back func()){
			"killed":   func(n *enginetest.Node) func() { n.Kill(); return n.Start },
			"paused":   func(n *enginetest.Node) func() { n.Pause(); return n.Resume },
			"isolated": func(n *enginetest.Node) func() { n.Isolate(); return n.Heal },
		} {
			o := enginetest.Options{Kind: kind, Replicas: 2, Files: enginetest.EachWrite, NodeTimeout: 2 * time.Second,
				Notice: 50 * time.Millisecond}
			faulty(t, o, func(t *testing.T, e *enginetest.Engine, u *user) {
				u.leaves("k", 99)
				master := e.MasterOf("k")
				back := fault(master)
				celldtest.Pass(o.NodeTimeout + o.Notice)
				if left := u.recovers("k", 3*time.Second); left != 98 && name != "isolated" {
					t.Errorf("%s: %d left", name, left)
				}
				if e.MasterOf("k") == master {
					t.Errorf("%s: the master is still the master", name)
				}
				back()
				celldtest.Pass(10 * time.Second)
				if left := u.recovers("k", 0); left != 97 && name != "isolated" {
					t.Errorf("%s, and back: %d left", name, left)
				}
				if master.IsMaster() {
					t.Errorf("%s, and back: it is a master", name)
				}
			})
		}
	}
}

// A master that has lost its keys takes those of its replica away, too.
func TestRestartWithoutFiles(t *testing.T) {
	o := enginetest.Options{Kind: enginetest.Cluster, Replicas: 1, Notice: 50 * time.Millisecond}
	faulty(t, o, func(t *testing.T, e *enginetest.Engine, u *user) {
		u.leaves("k", 99)
		u.leaves("k", 98)
		master := e.MasterOf("k")
		master.Kill()
		master.Start()
		celldtest.Pass(time.Second)
		if left := u.recovers("k", 3*time.Second); left != 99 {
			t.Errorf("%d left", left)
		}
		e.Failover(master)
		celldtest.Pass(time.Second)
		if left := u.recovers("k", 3*time.Second); left != 98 {
			t.Errorf("%d left on the replica", left)
		}
	})
}

// A Cluster that lacks a master serves the rest, if it may.
func TestCoverage(t *testing.T) {
	for _, part := range []bool{true, false} {
		o := enginetest.Options{Kind: enginetest.Cluster, NodeTimeout: 2 * time.Second, PartOK: part, Files: enginetest.EachWrite}
		faulty(t, o, func(t *testing.T, e *enginetest.Engine, u *user) {
			dead, other := e.MasterOf("k"), ""
			for i := 0; e.MasterOf(other) == dead; i++ {
				other = fmt.Sprint(i)
			}
			u.leaves("k", 99)
			u.leaves(other, 99)
			dead.Kill()
			celldtest.Pass(10 * time.Second)
			if n, known := u.Facts().SlotsWithoutMaster, u.Facts().SlotsKnown; !known || n < (1<<14)/3 || n > (1<<14)/3+1 {
				t.Errorf("%d slots have no master (%v)", n, known)
			}
			if u.fails("k", "", false); part {
				u.leaves(other, 98)
			} else {
				u.fails(other, "the Cluster is down", false)
			}
			if away := u.Away(); (away == nil) != part {
				t.Errorf("away: %v", away)
			}
			dead.Start()
			if left := u.recovers("k", 5*time.Second); left != 98 {
				t.Errorf("%d left", left)
			}
			u.recovers(other, 5*time.Second)
		})
	}
}

// An isolated master of a Cluster that clients reach goes on for the timeout. What it has granted is lost then.
func TestIsolate(t *testing.T) {
	o := enginetest.Options{Kind: enginetest.Cluster, Replicas: 1, NodeTimeout: 2 * time.Second}
	faulty(t, o, func(t *testing.T, e *enginetest.Engine, u *user) {
		u.leaves("k", 99)
		master := e.MasterOf("k")
		master.Isolate()
		u.leaves("k", 98)
		celldtest.Pass(o.NodeTimeout + time.Millisecond)
		if left := u.recovers("k", 3*time.Second); left != 98 {
			t.Errorf("%d left on the other side", left)
		}
		master.Heal()
		u.leaves("k", 97)
		if got := raw(t, e, master, "GET k"); !strings.HasPrefix(got, "-MOVED ") {
			t.Errorf("the old master: %q", got)
		}
	})
}

// raw asks a node by a connection of its own, in RESP2.
func raw(t *testing.T, e *enginetest.Engine, n *enginetest.Node, lines ...string) (replies string) {
	conn, err := e.Dial(context.Background(), n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := newHalf(t, conn)
	for _, line := range lines {
		replies += h.ask(wire.AppendCommand(nil, strings.Fields(line)...), 1)
	}
	return replies
}

// Messages reach clients of all nodes of a Cluster.
func TestPublish(t *testing.T) {
	e := enginetest.Start(t, enginetest.Options{Kind: enginetest.Cluster})
	conn, err := e.Dial(context.Background(), e.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := newHalf(t, conn)
	h.ask(wire.AppendCommand(nil, "SUBSCRIBE", "c"), 1)
	for i, n := range e.Nodes() {
		raw(t, e, n, fmt.Sprint("PUBLISH c ", i))
		if got, want := h.ask(nil, 1), fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n%d\r\n", i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The same seed, clock and commands bring the same replies.
func TestRepeats(t *testing.T) {
	run := func() (replies []string) {
		now := int64(1_800_000_000_000_000_000)
		e := enginetest.Start(t, enginetest.Options{Replicas: 1, MaxMemory: 600, Evicts: true, Clock: func(int) int64 { return now }})
		conn, _ := e.Dial(context.Background(), e.Addrs()[0])
		defer conn.Close()
		h, r := newHalf(t, conn), testRand()
		for range 5000 {
			now += r.Int64N(1e9)
			args := anyCommand(r)
			if r.IntN(10) == 0 {
				args = [][]byte{[]byte("RANDOMKEY")}
			}
			replies = append(replies, h.ask(wire.AppendCommand(nil, args...), 1))
		}
		return replies
	}
	if a, b := run(), run(); !slices.Equal(a, b) {
		t.Error("replies differ")
	}
}

// A slot moves. Calls on one key are decided all the while; those of keys that are in two places wait.
func TestMoveSlot(t *testing.T) {
	faulty(t, enginetest.Options{Kind: enginetest.Cluster, Replicas: 1}, func(t *testing.T, e *enginetest.Engine, u *user) {
		const slot = "{k}"
		keys := []string{slot + "a", slot + "b", slot + "c"}
		for _, key := range keys {
			u.leaves(key, 99)
		}
		from := e.MasterOf(slot)
		to := e.Nodes()[(slices.Index(e.Nodes(), from)+1)%3]
		m := e.MoveSlot(int(link.HashSlot(slot)), to)
		for _, key := range keys {
			u.leaves(key, 98)
		}
		u.leaves(slot+"new", 99)
		if left := m.Keys(1); left != 2 {
			t.Errorf("%d keys are left", left)
		}
		for _, key := range keys {
			u.leaves(key, 97)
		}
		taken := make(chan error, 1)
		go func() { taken <- u.takeAll(keys[:2]...) }()
		celldtest.Pass(100 * time.Millisecond)
		select {
		case err := <-taken:
			t.Errorf("keys in two places: %v", err)
		default:
		}
		m.End()
		if err := <-taken; err != nil {
			t.Error(err)
		}
		for i, want := range []int64{96, 96, 96} {
			u.leaves(keys[i], want)
		}
		u.leaves(slot+"new", 98)
		if e.MasterOf(slot) != to {
			t.Error("the slot has not moved")
		}
		if !e.Failover(to) {
			t.Error("no replica")
		}
		if left := u.recovers(keys[0], 3*time.Second); left != 95 {
			t.Errorf("%d left on the replica of the new master", left)
		}
	})
}

// A lease is taken while its slot moves: its ids' hash is on the one node, and the key on the other.
func TestMoveSlotOfLeases(t *testing.T) {
	leaseWhileMoving(t, (*enginetest.Engine).Dial)
}

func leaseWhileMoving(t *testing.T, dial func(*enginetest.Engine, context.Context, string) (net.Conn, error)) {
	t.Helper()
	faulty(t, enginetest.Options{Kind: enginetest.Cluster}, func(t *testing.T, e *enginetest.Engine, _ *user) {
		u := open(t, e, func(ctx context.Context, to string) (net.Conn, error) { return dial(e, ctx, to) })
		first, err := u.lease("z")
		if err != nil {
			t.Fatal(err)
		}
		from := e.MasterOf("z")
		m := e.MoveSlot(int(link.HashSlot("z")), e.Nodes()[(slices.Index(e.Nodes(), from)+1)%3])
		if left := m.Keys(1); left != 1 {
			t.Fatalf("%d keys are left", left)
		}
		if second, err := u.lease("z"); err != nil || second <= first {
			t.Errorf("%d, then %d, %v", first, second, err)
		}
		m.End()
		if third, err := u.lease("z"); err != nil || third <= first {
			t.Errorf("%d, then %d, %v", first, third, err)
		}
	})
}

// lease takes a lease, and returns its id.
func (u *user) lease(key string) (id int64, err error) {
	limit, err := cell.ParseLimit("5/1h")
	if err != nil {
		return 0, err
	}
	terms := &store.Terms{LeaseNS: 60e9}
	o := store.TakeOptions{Cost: 1, Terms: terms}
	err = u.ask(store.TakeRequest{Calls: []store.Call{{Key: []byte(key), Limit: &limit}}, TakeOptions: o})
	return terms.Lease, err
}

// Masters fail over while a slot moves.
func TestFailoverWhileMoving(t *testing.T) {
	faulty(t, enginetest.Options{Kind: enginetest.Cluster, Replicas: 1}, func(t *testing.T, e *enginetest.Engine, u *user) {
		u.leaves("{k}a", 99)
		u.leaves("{k}b", 99)
		from := e.MasterOf("{k}")
		to := e.Nodes()[(slices.Index(e.Nodes(), from)+1)%3]
		m := e.MoveSlot(int(link.HashSlot("k")), to)
		m.Keys(1)
		if !e.Failover(from) || !e.Failover(to) {
			t.Fatal("no replica")
		}
		celldtest.Pass(10 * time.Second)
		for _, want := range []int64{98, 97} {
			u.leaves("{k}a", want)
			u.leaves("{k}b", want)
			m.To.Pause()
			if m.End() {
				t.Error("a slot has moved to a node that does not answer")
			}
			m.To.Resume()
		}
		if !m.End() || e.MasterOf("{k}") == to {
			t.Error("the slot has not moved to the replica")
		}
		celldtest.Pass(10 * time.Second)
		u.leaves("{k}a", 96)
		u.leaves("{k}b", 96)
	})
}

// takeAll takes from a limit of each key, from all or from none.
func (u *user) takeAll(keys ...string) error {
	limit, err := cell.ParseLimit("5/1h")
	if err != nil {
		return err
	}
	r := store.TakeRequest{TakeOptions: store.TakeOptions{Cost: 1}}
	for _, key := range keys {
		r.Calls = append(r.Calls, store.Call{Key: []byte(key + "-t"), Limit: &limit})
	}
	return u.ask(r)
}

func (u *user) ask(r store.TakeRequest) error {
	w, one := make(waker, 1), []store.TakeRequest{r}
	if !u.TakeBatch(one, store.Access{NowNS: time.Now().UnixNano()}, w) {
		<-w
	}
	return one[0].Err
}
