package admin

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"celld/persistence"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/config"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/table"
)

// life notes how a server ends.
type life struct{ did, failing string }

func (l *life) AbortShutdown() bool { return l.failing != "abort" }
func (l *life) Busy() bool          { return l.failing == "busy" }
func (l *life) Shutdown(func())     { l.did += " stops" }

func (l *life) PrepareShutdown(save, nosave bool) bool {
	l.did += fmt.Sprint(" save=", save, " nosave=", nosave)
	return l.failing != "save"
}

// keysTable reports as many keys as a test says.
type keysTable struct {
	keys int
	is   memory.Stats
}

func (t *keysTable) Len(int64) int            { return t.keys }
func (t *keysTable) Stats(int64) memory.Stats { return t.is }

// heap is used, held and peak.
type heap [3]int64

func (h heap) Read() (used, held, peak int64) { return h[0], h[1], h[2] }

// server is what a test's commands are asked of.
type server struct {
	*calltest.Host
	Server
	life
	keysTable
}

func newServer() *server {
	s := &server{}
	s.Server = Server{Config: config.New(), Heap: heap{1000, 1600, 2000}, Table: &s.keysTable, Life: &s.life,
		Log: slog.New(slog.DiscardHandler), ClientBytes: func() int64 { return 77 }}
	s.Server.Metrics = metrics.New(metrics.Section{Name: "One", ByDefault: true, Read: func(l *metrics.List) { l.Field("at", l.NowNS) }},
		metrics.Section{Name: "Two", Read: func(l *metrics.List) { l.Field("n", 2) }})
	s.Host = calltest.New(memory.Options{}, Rows(func() Server { return s.Server })...)
	s.Connect(&client.List{}, acl.NewUsers(acl.NewTable(nil, nil)))
	return s
}

func (s *server) wants(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := s.Do(strings.Fields(pairs[i])...); got != pairs[i+1] {
			t.Errorf("%s: %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

func fails(text string, args ...any) string { return "-" + fmt.Sprintf(text, args...) + "\r\n" }

func TestWhatAServerSays(t *testing.T) {
	newServer().wants(t,
		"INFO", "$31\r\n# One\r\nat:1767225600000000000\r\n\r\n",
		"INFO TWO", "$12\r\n# Two\r\nn:2\r\n\r\n",
		"INFO nothing", "$0\r\n\r\n",
		"TIME", "*2\r\n$10\r\n1767225600\r\n$1\r\n0\r\n",
		"ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
		"MODULE LIST", "*1\r\n*8\r\n$4\r\nname\r\n$10\r\nredis-cell\r\n$3\r\nver\r\n:500\r\n$4\r\npath\r\n$0\r\n\r\n$4\r\nargs\r\n*0\r\n")
}

// SHUTDOWN does what its options say together, and nothing where they contradict each other or something is in the way.
func TestShutdown(t *testing.T) {
	for _, tt := range []struct{ call, failing, reply, did string }{
		{"SHUTDOWN", "", "", " save=false nosave=false stops"},
		{"SHUTDOWN save NOW", "", "", " save=true nosave=false stops"},
		{"SHUTDOWN NOSAVE NOSAVE", "busy", "", " save=false nosave=true stops"},
		{"SHUTDOWN SAVE", "save", fails(errShutdownSave), " save=true nosave=false"},
		{"SHUTDOWN SAVE FORCE", "save", "", " save=true nosave=false stops"},
		{"SHUTDOWN", "busy", fails(command.ErrBusy), ""},
		{"SHUTDOWN ABORT", "", "+OK\r\n", ""},
		{"SHUTDOWN ABORT abort", "busy", "+OK\r\n", ""},
		{"SHUTDOWN ABORT", "abort", fails(ErrNoShutdown), ""},
		{"SHUTDOWN ABORT NOW", "", fails(argument.ErrSyntax), ""},
		{"SHUTDOWN SAVE NOSAVE", "", fails(argument.ErrSyntax), ""},
		{"SHUTDOWN LATER", "", fails(argument.ErrSyntax), ""},
	} {
		s := newServer()
		s.Disk = persistence.New(s.Store, persistence.Options{Dir: t.TempDir(), Clock: func() int64 { return s.NowNS }})
		s.failing = tt.failing
		if s.wants(t, tt.call, tt.reply); s.did != tt.did {
			t.Errorf("%s: %q, want %q", tt.call, s.did, tt.did)
		}
	}
	s := newServer() // an engine keeps the keys
	if s.wants(t, "SHUTDOWN SAVE", fails(ErrEngineKeeps, "SHUTDOWN SAVE")); s.did != "" {
		t.Errorf("it %s", s.did)
	}
	if s.wants(t, "SHUTDOWN", ""); s.did != " save=false nosave=false stops" {
		t.Errorf("with an engine it %s", s.did)
	}
}

// The disk is written at once, in the background, or after the end of a transaction.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		clock := func() int64 { return s.NowNS }
		cfg := config.New().Persistence()
		cfg.Dir, cfg.AppendOnly, cfg.Clock, cfg.Log = t.TempDir(), true, clock, slog.New(slog.DiscardHandler)
		s.Disk = persistence.New(s.Store, cfg)
		if _, err := s.Disk.Load(nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Disk.Start(func(step func() bool) {
			for step() { //nolint:revive // it does all
			}
		}, nil); err != nil {
			t.Fatal(err)
		}
		s.NowNS += 5e9
		s.wants(t, "SAVE", "+OK\r\n", "LASTSAVE", ":1767225605\r\n", "BGSAVE SOON", fails(argument.ErrSyntax),
			"BGSAVE SCHEDULE NOW", fails(argument.ErrSyntax))
		s.NowNS += 5e9
		s.wants(t, "BGSAVE", "+Background saving started\r\n")
		synctest.Wait()
		s.wants(t, "LASTSAVE", ":1767225610\r\n", "BGREWRITEAOF", "+Background append only file rewriting started\r\n")
		synctest.Wait()
		s.InExec = true
		s.wants(t, "BGSAVE", "+"+saveScheduled+"\r\n", "BGREWRITEAOF", "+"+rewriteScheduled+"\r\n")
		s.Disk.Stop()
		if err := s.Disk.Close(false); err != nil {
			t.Error(err)
		}
	})
	s := newServer()
	for _, name := range []string{"SAVE", "BGSAVE", "BGREWRITEAOF", "LASTSAVE"} {
		s.wants(t, name, fails(ErrEngineKeeps, name))
	}
}

// The answer says that a save already goes on.
func TestStarted(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "+it runs\r\n"}, {persistence.ErrSaving, fails(ErrSaving)}, {persistence.ErrRewriting, fails(ErrRewriting)},
		{persistence.ErrStopping, fails("ERR %s", persistence.ErrStopping)},
	} {
		c := &command.Call{}
		if started(c, tt.err, "it runs"); string(c.Out) != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, c.Out, tt.want)
		}
	}
}

func TestMemoryUsage(t *testing.T) {
	s := newServer()
	if err := s.Store.Update([]byte("k"), store.Access{NowNS: s.NowNS}, func(store.Value, bool) (store.Value, bool) {
		return store.Value{TAT: uint64(s.NowNS + 1e9), ExpiryNS: store.NoExpiry}, true
	}); err != nil {
		t.Fatal(err)
	}
	bytes, _ := s.Store.KeyBytes([]byte("k"), s.NowNS)
	s.wants(t, "MEMORY USAGE k", fmt.Sprintf(":%d\r\n", bytes), "MEMORY USAGE k samples 0", fmt.Sprintf(":%d\r\n", bytes),
		"MEMORY USAGE l", "$-1\r\n", "MEMORY USAGE k SAMPLES -1", fails(argument.ErrSyntax),
		"MEMORY USAGE k SAMPLES x", fails(argument.ErrNotInteger), "MEMORY USAGE k SAMPLES", fails(argument.ErrSyntax),
		"MEMORY USAGE k ALL 5", fails(argument.ErrSyntax))
}

// MEMORY STATS has Redis's names in Redis's order, with what is known.
func TestMemoryStats(t *testing.T) {
	s := newServer()
	s.RESP3, s.is.Bytes = true, 400
	before := "$14\r\npeak.allocated\r\n:2000\r\n$15\r\ntotal.allocated\r\n:1000\r\n$17\r\nstartup.allocated\r\n:0\r\n$19\r\nreplication.backlog\r\n:0\r\n$14\r\nclients.slaves\r\n:0\r\n" +
		"$14\r\nclients.normal\r\n:77\r\n$13\r\ncluster.links\r\n:0\r\n$10\r\naof.buffer\r\n:0\r\n$10\r\nlua.caches\r\n:0\r\n$16\r\nfunctions.caches\r\n:0\r\n"
	behind := "$13\r\ndataset.bytes\r\n:400\r\n$18\r\ndataset.percentage\r\n,40\r\n$15\r\npeak.percentage\r\n,50\r\n" +
		"$19\r\nallocator.allocated\r\n:1000\r\n$16\r\nallocator.active\r\n:1600\r\n$18\r\nallocator.resident\r\n:1600\r\n$29\r\nallocator-fragmentation.ratio\r\n,1.6\r\n$29\r\nallocator-fragmentation.bytes\r\n:600\r\n" +
		"$19\r\nallocator-rss.ratio\r\n,1\r\n$19\r\nallocator-rss.bytes\r\n:0\r\n$18\r\nrss-overhead.ratio\r\n,1\r\n$18\r\nrss-overhead.bytes\r\n:0\r\n$13\r\nfragmentation\r\n,1.6\r\n$19\r\nfragmentation.bytes\r\n:600\r\n"
	s.wants(t, "MEMORY STATS", "%27\r\n"+before+
		"$14\r\noverhead.total\r\n:600\r\n$10\r\nkeys.count\r\n:0\r\n$18\r\nkeys.bytes-per-key\r\n:400\r\n"+behind)
	s.keys = 10
	db := fmt.Sprintf("$4\r\ndb.0\r\n%%3\r\n$23\r\noverhead.hashtable.main\r\n:%d\r\n$26\r\noverhead.hashtable.expires\r\n:0\r\n$31\r\noverhead.hashtable.slot-to-keys\r\n:0\r\n", 10*table.OverheadBytes)
	s.wants(t, "MEMORY STATS", "%28\r\n"+before+db+
		"$14\r\noverhead.total\r\n:600\r\n$10\r\nkeys.count\r\n:10\r\n$18\r\nkeys.bytes-per-key\r\n:40\r\n"+behind)
	s.is.Bytes = 2000 // an estimate
	if got := s.Do("MEMORY", "STATS"); !strings.Contains(got, "overhead.total\r\n:0\r\n") {
		t.Errorf("%q", got)
	}
}

func TestPurge(t *testing.T) {
	s := newServer()
	s.wants(t, "MEMORY PURGE", "+OK\r\n", "MEMORY PURGE", "+OK\r\n")
}
