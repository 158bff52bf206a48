package resp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/config"
	"celld/resp/door"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// Leases that were granted without the engine are renewed, settled and released without it. Others are not known to be there or not.
func TestLeasesWithoutTheEngine(t *testing.T) {
	keys := memory.New(memory.Options{Shards: 1})
	modes, _ := remote.ParseFailures("local")
	engine, err := remote.Open(remote.Options{URL: "unix:///no/such/engine", Timeout: time.Minute, Policies: keys.Set, Failures: modes})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	w := newWorld(t)
	w.Server = NewServer(Options{Config: config.New(), Store: keys, Engine: engine, Clock: func() int64 { return w.nowNS },
		Version: "test"})
	c := w.connect()
	c.wantPrefix(t, "CL.RELEASE k 1", "-STOREDOWN ") // there is no table yet
	take := func() string { return c.later("CL.TAKE", "k", "20/1m,algo=conc") }
	reply := strings.Split(take(), "\r\n:")
	id := strings.TrimSpace(reply[len(reply)-1])
	if second := take(); !strings.HasPrefix(second, "*8\r\n:1\r\n") || id == "0" {
		t.Fatalf("the lease is %s, and then: %q", id, second)
	}
	c.wantPrefix(t, "CL.RENEW k "+id+" 60000", ":1\r\n")
	c.wantPrefix(t, "CL.RELEASE k 1", "-STOREDOWN ")
	c.wantPrefix(t, "GET k", "-STOREDOWN ")
	c.wantPrefix(t, "CL.RELEASE k "+id, ":1\r\n")
	c.wantPrefix(t, "CL.RELEASE k "+id, "-STOREDOWN ")
	if third := take(); !strings.HasPrefix(third, "*8\r\n:0\r\n") {
		t.Errorf("it was released, and then: %q", third)
	}
}

// later is do of a command that a remote.Store answers.
func (p *peer) later(words ...string) string {
	reply := p.do(words...)
	celldtest.Eventually(p.t, "it is answered", func() bool {
		reply += p.send("")
		return reply != ""
	})
	return reply
}

func (p *peer) wantPrefix(t *testing.T, line, prefix string) {
	t.Helper()
	if reply := p.later(strings.Fields(line)...); !strings.HasPrefix(reply, prefix) {
		t.Errorf("%s: %q", line, reply)
	}
}

// A policy that an engine may have is not denied to exist.
func TestPoliciesUnknown(t *testing.T) {
	w, e := engineWorld(t, false)
	c := w.connect()
	c.want("CL.POLICY SET known 1/1h", ":1\r\n")
	e.Unknown = errors.New("it is away")
	for _, line := range []string{
		"CL.TAKE k @none", "CL.THROTTLE k @none", "CL.MTAKE 1 k @none", "CL.GIVE k @none 1", "CL.POLICY GET none", "CL.POLICY GET @none",
		"CL.STATS none", "CL.TOP 5 none", "CL.POLICY LIST none*", "CL.RULE LIST",
	} {
		c.want(line, "-STOREDOWN it is away\r\n")
	}
	unknown := door.Ask{Key: "k", Limits: []string{"@none"}}
	if _, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, unknown); err == nil || err.Error() != "STOREDOWN it is away" {
		t.Errorf("a check: %v", err)
	}
	c.want("CL.POLICY GET known", "$4\r\n1/1h\r\n")
	c.want("CL.POLICY LIST", "*2\r\n$5\r\nknown\r\n$4\r\n1/1h\r\n")
	e.Unknown = nil
	c.want("CL.RULE LIST", "*0\r\n")
	c.want("CL.TAKE k @none", "-NOPOLICY no such policy 'none'\r\n")
	c.want("CL.POLICY GET none", "$-1\r\n")
}

// One call is one in the counts of what was decided without the engine, and of what was refused, whatever the call is made of.
func TestCallsWithoutTheEngineAreCountedOnce(t *testing.T) {
	for _, mode := range []string{"error", "allow", "deny", "local"} {
		keys := memory.New(memory.Options{Shards: 1})
		limit, _ := cell.ParseLimit("9/1h")
		if _, err := keys.SetPolicy("p", []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		modes, _ := remote.ParseFailures(mode)
		engine, err := remote.Open(remote.Options{URL: "unix:///no/such/engine", Timeout: time.Minute, Policies: keys.Set, Failures: modes})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		w.Server = NewServer(Options{Config: config.New(), Store: keys, Engine: engine, Clock: func() int64 { return w.nowNS },
			Version: "test"})
		c := w.connect()
		for n, line := range []string{
			"CL.THROTTLE k 8 9 3600", "CL.THROTTLE k 8 9 3600 -1", "CL.THROTTLE k @p", "CL.THROTTLE k @p 0", "CL.THROTTLE k @p -1",
			"CL.TAKE k @p 9/1m", "CL.TAKE k @p PEEK", "CL.MTAKE 2 a @p b @p", "CL.GIVE k @p 1",
		} {
			c.later(strings.Fields(line)...)
			counts := [2]int64{engine.Stats().DecidedWithout.Load(), engine.Stats().Refused.Load()}
			want := [2]int64{int64(n) + 1, 0}
			if mode == "error" {
				want = [2]int64{0, int64(n) + 1}
			}
			if counts != want {
				t.Fatalf("%s, %s: %d decided without and refused, want %d", mode, line, counts, want)
			}
		}
		engine.Close()
	}
}
