package resp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/clock"
	"celld/resp/command/argument"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
	"celld/resp/transport"
	"celld/store/memory"
	"celld/store/policy"
)

// lateDisk opens a file to read only when it is told to.
type lateDisk struct {
	*sessiontest.Disk
	opens chan struct{}
}

func (d lateDisk) Open(name string) (dir.File, error) {
	<-d.opens
	return d.Disk.Open(name)
}

// TestLoading reads the append-only file of another server: what is said meanwhile, what is taken from it, and what the log says.
func TestLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, disk := t.TempDir(), lateDisk{&sessiontest.Disk{}, make(chan struct{})}
		file := sessiontest.Frame("SELECT", "0") + sessiontest.Frame("SET", "k", "1800000000000000000") +
			sessiontest.Frame("SETEX", "e", "100", "1800000000000000000") + sessiontest.Frame("CL.THROTTLE", "t", "15", "30", "60") +
			sessiontest.Frame("CL.TAKE", "l", "5/1h") + sessiontest.Frame("DEL", "t", "nosuch") +
			sessiontest.Frame("CL.TAKE", "p", "@named") + sessiontest.Frame("SET", "past", "5", "PXAT", "5") +
			sessiontest.Frame("SET", "count", "5") + sessiontest.Frame("INCRBY", "count", "2") +
			sessiontest.Frame("SET", "count", "8", "KEEPTTL") + // as Redis writes INCREX

			// none of these
			sessiontest.Frame("CL.TAKE", "a") + sessiontest.Frame("GETDEL") + sessiontest.Frame("GETDEL", "k", "k") +
			sessiontest.Frame("GET", "k") + sessiontest.Frame("NOSUCH") + sessiontest.Frame("CL.TAKE", "a", "x") +
			sessiontest.Frame("SETEX", "a", "100", "x") + sessiontest.Frame("HGETALL", "l")
		if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		w := newWorldOn(t, disk, dir)
		if !w.Loads() || newWorld(t).Loads() {
			t.Error("a server with an append-only file loads, and one without does not")
		}
		limit, _ := argument.ParseLiteral([]byte("7/1h"), 1)
		w.reloads.File.Policies = []*policy.Policy{policy.New("named", limit)}
		w.sessions.Gate.Set(gate.Loading, true) // as Serve does
		loaded := make(chan error)
		go func() {
			loaded <- w.loadAll(func(step func() bool) {
				for step() {
				}
			})
		}()
		synctest.Wait()
		p := w.connect()
		p.want("GET k", "-"+errLoading+"\r\n")
		p.want("CL.THROTTLE k 1 1 1", "-"+errLoading+"\r\n")
		if got := p.do("INFO", "persistence"); !strings.Contains(got, "\r\nloading:1\r\n") ||
			!strings.Contains(got, "\r\nloading_start_time:1790000000\r\nloading_total_bytes:0\r\nloading_loaded_bytes:0\r\nloading_loaded_perc:0.00\r\nloading_eta_seconds:1\r\n") {
			t.Errorf("meanwhile: %q", got)
		}
		w.followWall() // not while it loads
		close(disk.opens)
		if err := <-loaded; err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.sessions.Persist.Close(false) }()
		if got := p.do("INFO", "persistence"); !strings.Contains(got, "\r\nloading:0\r\n") || strings.Contains(got, "loading_start_time") ||
			!strings.Contains(got, "rdb_last_load_keys_expired:1\r\nrdb_last_load_keys_loaded:5\r\n") {
			t.Errorf("then: %q", got)
		}
		p.want("EXISTS k e l p", ":4\r\n")
		p.want("DBSIZE", ":5\r\n")
		p.want("GET count", "$1\r\n8\r\n")
		p.want("TTL e", ":100\r\n")
		p.want("CL.TAKE l 5/1h PEEK", "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:720000\r\n:0\r\n:0\r\n")
		p.want("CL.TAKE p @named PEEK", "*7\r\n:0\r\n:7\r\n:6\r\n:-1\r\n:514286\r\n:0\r\n:0\r\n")
		if got := p.do("INFO", "stats"); !strings.Contains(got, "throttle_allowed:0\r\n") || !strings.Contains(got, "take_allowed:0\r\n") {
			t.Errorf("what was read counts: %q", got)
		}
		for _, line := range []string{
			"msg=loaded files=", "keys=5 expired=1 took=0s\n", `msg="left out what is not a limit" files=`,
			`found="1 GET, 1 HGETALL, 1 NOSUCH, 1 SETEX, 2 CL.TAKE, 2 GETDEL"`,
		} {
			if !strings.Contains(w.log.String(), line) {
				t.Errorf("no %q in %s", line, w.log)
			}
		}
	})
}

// A key that holds a TAT and has no expiry, by whatever command, ends at its TAT, also where that passes while the server is not running.
func TestATATEndsWhileNothingRuns(t *testing.T) {
	for name, removed := range map[string]string{"append-only": "dump.rdb", "snapshot": "appendonly.aof"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := func(nowNS int64) (*world, *peer) {
				t.Helper()
				w := newWorldOn(t, &sessiontest.Disk{}, dir)
				w.nowNS = nowNS
				if err := w.loadAll(func(step func() bool) {
					for step() {
					}
				}); err != nil {
					t.Fatal(err)
				}
				return w, w.connect()
			}
			w, p := start(sessiontest.StartNS)
			at := func(ms int64) string { return strconv.FormatInt(w.nowNS+ms*1e6, 10) }
			for _, call := range []string{
				"CL.THROTTLE throttle 0 1 1", "PERSIST throttle", "SET set " + at(1000),
				"SETNX setnx " + at(1000), "GETSET getset " + at(1000), "SET getex " + at(1000) + " EX 1", "GETEX getex PERSIST",
				"SET keepttl 5", "SET keepttl " + at(1000) + " KEEPTTL", "SET decrby " + at(2000), "DECRBY decrby 1000000000",
				"SET increx " + at(1000) + " EX 1", "INCREX increx BYINT -1 PERSIST", "SET from " + at(1000), "RENAME from renamed",
				"COPY renamed copied", "CL.TAKE take 1/1s", "PERSIST take",
			} {
				if got := p.do(strings.Fields(call)...); strings.HasPrefix(got, "-") {
					t.Fatalf("%s: %q", call, got)
				}
			}
			p.do("EVAL", "redis.call('SET', KEYS[1], ARGV[1])", "1", "eval", at(1000))
			keys := strings.Fields("throttle set setnx getset getex keepttl decrby increx renamed copied take eval")
			expect := func(when, ttl string) {
				t.Helper()
				for _, key := range keys {
					if got := p.do("PTTL", key); got != ttl {
						t.Errorf("%s: PTTL %s is %q, want %q", when, key, got, ttl)
					}
				}
			}
			restart := func(ms int64) {
				t.Helper()
				p.want("SAVE", "+OK\r\n")
				if err := w.sessions.Persist.Close(false); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(filepath.Join(dir, removed)); err != nil {
					t.Fatal(err)
				}
				w, p = start(w.nowNS + ms*1e6)
			}
			expect("before", ":-1\r\n")
			restart(500)
			expect("after a restart", ":-1\r\n")
			restart(500)
			expect("after the TAT", ":-2\r\n")
			p.want("CL.TAKE throttle 5/1h PEEK", "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n")
			_ = w.sessions.Persist.Close(false)
		})
	}
}

// A start tells of files that nobody reads, and how to read them.
func TestFilesThatAreNotRead(t *testing.T) {
	for name, settings := range map[string][]string{"dump.rdb": nil, "appendonly.aof": {"save", "60 1"}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w := newWorldIn(t, dir, settings...)
		if err := w.loadAll(nil); err != nil {
			t.Fatal(err)
		}
		_ = w.sessions.Persist.Close(false)
		want := "--save reads a snapshot, --appendonly an append-only file\" not_read=[" + filepath.Join(dir, name) + "]\n"
		if strings.Count(w.log.String(), want) != 1 {
			t.Errorf("no %q in %s", want, w.log)
		}
	}
}

// A server that cannot read its files or set its policies does not start.
func TestLoadingFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), []byte("*1\r\n:5\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, &sessiontest.Disk{}, dir)
	w.sessions.Gate.Set(gate.Loading, true)
	if err := w.loadAll(nil); err == nil || !strings.Contains(err.Error(), "appendonly.aof") || !w.sessions.Gate.Has(gate.Loading) {
		t.Errorf("a damaged file: %v", err)
	}
	err := newWorldOn(t, &sessiontest.Disk{}, filepath.Join(dir, "nosuch")).loadAll(nil)
	if err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("no directory: %v", err)
	}
}

// Serve ends with the error where the files cannot be read, and without one where it is told to stop meanwhile.
func TestServeWhileLoading(t *testing.T) {
	for name, test := range map[string]struct{ file, fails string }{
		"damaged": {"*1\r\n:5\r\n", "appendonly.aof"},
		"stopped": {sessiontest.Frame("DEL", "k"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, disk := t.TempDir(), lateDisk{&sessiontest.Disk{}, make(chan struct{})}
			if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWorldOn(t, disk, dir)
			w.sessions.Clock = clock.New().NowNS // to drain takes time
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error)
			go func() {
				served <- w.Serve(ctx, nil, func() {
					if test.fails != "" {
						t.Error("ready")
					}
				})
			}()
			if test.fails == "" {
				stop()
				eventually(t, "end", w.sessions.Ending.Load)
			}
			close(disk.opens)
			if err := <-served; (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%v, want %q", err, test.fails)
			}
			stop()
		})
	}
}

// While the files are read, and not after that, each call of a pipeline is refused.
func TestThePipelineOfALoadingServer(t *testing.T) {
	call, answer := strings.Repeat(sessiontest.Frame("CL.TAKE", "k", "5/1m", "PEEK"), 3),
		strings.Repeat("*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", 3)
	ask, opened := func() {}, 0
	w := newWorldOn(t, hookedDisk{&sessiontest.Disk{}, func() { opened++; ask() }}, t.TempDir(), "shutdown-timeout", "0")
	c := w.connect()
	ask = func() {
		if got, want := c.send(call), strings.Repeat("-"+errLoading+"\r\n", 3); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tr, err := transport.New(w.sessions.Carried(), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = w.serve(ctx, nil, tr, func() {
		if got := c.send(call); got != answer {
			t.Errorf("%q, want %q", got, answer)
		}
		ask = func() {}
		stop()
	})
	if err != nil || opened == 0 {
		t.Errorf("%v, %d files were opened", err, opened)
	}
}

// errLoading is the answer to all that needs the files.
const errLoading = "LOADING Redis is loading the dataset in memory"

// A panic in loading is an error of the start.
func TestPanicInLoading(t *testing.T) {
	w := newWorld(t)
	o := w.sessions.Config.Persistence()
	o.Dir, o.AppendOnly, o.Clock, o.Log, o.Files = t.TempDir(), true, w.sessions.Clock, slog.New(slog.DiscardHandler),
		brokenFiles{&sessiontest.Disk{}}
	w.sessions.Persist = persistence.New(memory.New(memory.Options{Journal: true}), o)
	if err := w.loadAll(func(func() bool) {}); err == nil || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("%v", err)
	}
}

// hookedDisk calls a function when a file is opened to be read.
type hookedDisk struct {
	*sessiontest.Disk
	opened func()
}

type brokenFiles struct{ *sessiontest.Disk }

func (d hookedDisk) Open(name string) (dir.File, error) {
	d.opened()
	return d.Disk.Open(name)
}

func (brokenFiles) Open(string) (dir.File, error) { panic("no such disk") }

// A file that tells of new keys before it tells of those that went for them is read whole. The bound holds again once it is read.
func TestAFileOfAFullServer(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "noeviction"} {
		dir, file := t.TempDir(), ""
		for n := range 105 {
			file += sessiontest.Frame("SET", fmt.Sprint("k", n), "5")
		}
		for n := range 5 {
			file += sessiontest.Frame("DEL", fmt.Sprint("k", 50+n))
		}
		if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		w := newWorldOn(t, &sessiontest.Disk{}, dir, "max-keys", "100", "maxmemory-policy", policy)
		w.sessions.Gate.Set(gate.Loading, true)
		if err := w.loadAll(func(step func() bool) {
			for step() {
			}
		}); err != nil {
			t.Fatal(policy, err)
		}
		p := w.connect()
		p.want("EXISTS k0 k49 k55 k104", ":4\r\n")
		p.want("DBSIZE", ":100\r\n")
		p.do("SET", "more", "5")
		p.want("DBSIZE", ":100\r\n")
		_ = w.sessions.Persist.Close(false)
	}
}
