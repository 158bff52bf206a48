//go:build all

package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// returns is how soon decisions go on once the engine is back.
const returns = 3 * time.Second

// shared starts celld processes that share an engine. Unless the flags say otherwise, calls wait for it as long as by default.
func shared(t *testing.T, url string, processes int, flags ...string) (servers []*harness.Server) {
	t.Helper()
	for range processes {
		servers = append(servers, harness.StartStress(t, append([]string{"--store", url, "--store-timeout", "500ms"}, flags...)...))
	}
	return servers
}

// TestFaults tests an engine that refuses or loses what it is sent, in the middle of load, and then goes on.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string
		fault func(t *testing.T, n *engines.Node, l *load) // returns when the engine is well again
	}{
		{"paused for longer than calls wait", nil, func(t *testing.T, n *engines.Node, l *load) {
			n.Pause()
			l.fails("the engine has not answered in time") // what waits behind a question for the policies is not sent
			time.Sleep(time.Second)                        // the pause itself
			n.Resume()
		}},
		{"killed", []string{"--appendonly", "yes", "--appendfsync", "always"}, func(t *testing.T, n *engines.Node, l *load) {
			n.Kill()
			l.fails("the engine cannot be reached")
			n.Restart()
		}},
		{"scripts forgotten", nil, func(t *testing.T, n *engines.Node, l *load) {
			for range 20 {
				n.OK("SCRIPT", "FLUSH")
				l.goesOn(time.Now())
			}
			if stats, _ := harness.Bulk(n.Do("INFO", "errorstats")); !strings.Contains(stats, "errorstat_NOSCRIPT:") {
				t.Error("no script was forgotten")
			}
			for text := range l.seen() {
				if !strings.Contains(text, "has not answered in time") { // as on a machine that stands still
					t.Errorf("callers have seen it: %s", text)
				}
			}
		}},
		{"connections cut", nil, func(t *testing.T, n *engines.Node, l *load) {
			for range 20 {
				n.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
				l.goesOn(time.Now())
			}
		}},
		{"output buffer full", []string{"--client-output-buffer-limit", "normal", "40kb", "0", "0"},
			func(t *testing.T, n *engines.Node, l *load) {
				n.Do("HSET", "large", "5/1m,algo=window", strings.Repeat("x", 100<<10))
				c := harness.Dial(t, l.servers[0].Addr)
				for range 20 {
					if got := c.Do("CL.TAKE", "large", "5/1m,algo=window"); !strings.HasPrefix(got, "-STOREDOWN ") {
						t.Errorf("an answer that the engine cannot send: %.100q", got)
					}
					l.goesOn(time.Now())
				}
				if !strings.Contains(n.Log(), "output buffer limits") {
					t.Error("no buffer was full")
				}
			}},
		{"password changed", []string{"--user celld on >right allkeys allcommands"}, func(t *testing.T, n *engines.Node, l *load) {
			n.OK("ACL", "SETUSER", "celld", "resetpass", ">wrong")
			n.Do("CLIENT", "KILL", "USER", "celld")
			l.fails("the engine refuses the")
			n.OK("ACL", "SETUSER", "celld", "resetpass", ">right")
		}},
		{"permission lost", []string{"--user celld on >right allkeys allcommands"}, func(t *testing.T, n *engines.Node, l *load) {
			n.OK("ACL", "SETUSER", "celld", "-@write")
			l.fails("the engine's user lacks a permission")
			n.OK("ACL", "SETUSER", "celld", "+@all")
		}},
		{"a replica", nil, func(t *testing.T, n *engines.Node, l *load) {
			n.OK("REPLICAOF", "127.0.0.1", "1")
			l.fails("the engine is a read-only replica")
			n.OK("REPLICAOF", "NO", "ONE")
		}},
		{"out of memory", nil, func(t *testing.T, n *engines.Node, l *load) {
			n.OK("CONFIG", "SET", "maxmemory", "1")
			l.fails("OOM command not allowed when used memory > 'maxmemory'.")
			n.OK("CONFIG", "SET", "maxmemory", "0")
		}},
		{"busy with a script", []string{"--lua-time-limit", "10"}, func(t *testing.T, n *engines.Node, l *load) {
			c := n.Dial()
			c.Send(harness.Frame("EVAL", "while true do end", "0"))
			l.fails("the engine is busy with a script")
			n.OK("SCRIPT", "KILL")
		}},
		{"loading", []string{"--rdbcompression", "no", "--enable-debug-command", "yes"}, func(t *testing.T, n *engines.Node, l *load) {
			c := n.Dial()
			// it answers each 2 MB: ten times a second
			c.Do("EVAL", "for i = 1, 3000 do redis.call('SET', 'other' .. i, string.rep('x', 20480)) end", "0")
			c.Do("CONFIG", "SET", "key-load-delay", "1000")
			c.Send(harness.Frame("DEBUG", "RELOAD"))
			l.fails("the engine is loading its data")
			c.Expect("+OK\r\n")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
				args := test.args
				if i := slices.Index(args, "--enable-debug-command"); i >= 0 && e.Name == "redis-6.2" {
					args = args[:i] // which allows DEBUG, and does not know the option
				}
				n := e.Alone(t, args...).Nodes[0]
				url := "redis://" + n.Addr
				if len(args) > 0 && strings.HasPrefix(args[0], "--user") {
					url = "redis://celld:right@" + n.Addr
				}
				l := (&load{clients: 4}).start(t, shared(t, url, 2), kinds...)
				test.fault(t, n, l)
				l.within("the end of it", time.Now(), returns)
				l.check(0)
			})
		})
	}
}

// outlivesMaster kills a key's master, and starts it again.
func (l *load) outlivesMaster(f *engines.Fleet, key string) {
	l.t.Helper()
	master := f.MasterOf(key)
	master.Kill()
	f.MasterOf(key) // the next one: how long an election takes is not celld's
	l.within("the election of a master", time.Now(), returns)
	master.Restart()
	f.Settled()
	l.goesOn(time.Now())
}

// TestKilledMaster kills a master. What its replica does not hold yet is lost.
func TestKilledMaster(t *testing.T) {
	t.Parallel()
	for _, kind := range engines.Kinds[1:] {
		t.Run(kind.Name, func(t *testing.T) {
			engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
				f := kind.Start(e, t)
				l := (&load{clients: 4}).start(t, shared(t, f.URL, 2), kinds...)
				l.outlivesMaster(f, "throttle0")
				l.check(500)
			})
		})
	}
}

// TestHandedOver tells replicas to take over from masters that are well. A master waits until its replica has all: nothing is forgotten.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
		f := e.Cluster(t)
		l := (&load{clients: 4}).start(t, shared(t, f.URL, 2), kinds...)
		for i, master := range f.Nodes[:3] {
			replica := f.Nodes[3+i]
			var at time.Time
			celldtest.Eventually(t, "it has taken over", func() bool {
				if replica.IsMaster() {
					return !master.IsMaster()
				}
				if time.Since(at) > 6*time.Second { // a replica that is not elected, as its news are old, gives up after 5
					at = time.Now()
					replica.Do("CLUSTER", "FAILOVER")
				}
				return false
			})
			l.within("the handing over of a master", at, returns)
			f.Settled()
		}
		l.check(0)
	})
}

// TestMovedSlots moves the slots of all keys to other masters and back, while they are asked.
func TestMovedSlots(t *testing.T) {
	t.Parallel()
	engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
		f := e.Cluster(t)
		l := (&load{clients: 4}).start(t, shared(t, f.URL, 2), kinds...)
		slots := map[int]bool{}
		for _, a := range l.accounts {
			slots[f.Slot(a.key)] = true
		}
		at := time.Now()
		for range 2 {
			for slot := range slots {
				from := f.MasterOfSlot(slot)
				to := f.Nodes[(slices.Index(f.Nodes, from)+1)%3]
				f.MoveSlot(slot, to, func() { l.goesOn(time.Now()) })
			}
		}
		l.within("the first of many moves", at, time.Since(at))
		l.check(0)
	})
}
