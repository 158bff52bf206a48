//go:build all

package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// flood is what hostile clients send: the n-th command of one of them.
type flood struct {
	name     string
	commands int // of each client
	command  func(client, n int) []string
}

const floodClients = 3

// floods fill a table of so many bytes some two times each. In their order, each finds memory that another has used in another way.
func floods(maxMemory int) []flood {
	long := strings.Repeat("x", 60_000)
	began := time.Now().Add(-10 * time.Minute).UnixNano()
	log := fmt.Sprintf("limit=10000/1h,algo=log calls=%d:1%s", began, strings.Repeat(",+1:1", 7999))
	id := func(client, n int) string { return fmt.Sprintf("%d:%d:", client, n) }
	fills := func(bytes int) int { return 2 * maxMemory / bytes / floodClients }
	return []flood{
		{"literals", fills(1000), func(client, n int) []string {
			return []string{"CL.TAKE", id(client, n), fmt.Sprintf("%d/%ds,burst=%d", n+1, 3600+client, n+1)}
		}},
		{"CL.TAKE of 60 KB", fills(len(long)), func(client, n int) []string {
			return []string{"CL.TAKE", id(client, n) + long, "10/1h"}
		}},
		{"calls of logs", fills(2000), func(client, n int) []string {
			return []string{"CL.TAKE", id(client, n%20), "10000/1h,algo=log"}
		}},
		{"CL.THROTTLE of 60 KB", fills(len(long)), func(client, n int) []string {
			return []string{"CL.THROTTLE", id(client, n) + long, "10", "10", "3600"}
		}},
		{"HSET of logs", fills(8000 * 16), func(client, n int) []string {
			return []string{"HSET", id(client, n), "log/1h", log}
		}},
		{"HSET of parts of logs", fills(8000 * 16), func(client, n int) []string {
			all := fills(8000 * 16)
			key := id(client, all*3/4+n%(all/4)) // left by the flood before, and repeated here
			return []string{"HSET", key, "log/1h 1",
				fmt.Sprintf("limit=10000/1h,algo=log after=%d calls=%d:1", began+8000+int64(n), began+8001+int64(n))}
		}},
	}
}

// run sends a flood and reads the replies.
func (f flood) run(t *testing.T, srv *harness.Server) {
	t.Helper()
	var clients sync.WaitGroup
	for client := range floodClients {
		c := harness.Dial(t, srv.Addr)
		clients.Go(func() {
			defer c.Close()
			var batch, replies bytes.Buffer
			unread := 0
			for n := range f.commands {
				batch.Write(harness.Frame(f.command(client, n)...))
				if unread++; batch.Len() < 64<<10 && n+1 < f.commands {
					continue
				}
				c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
				if _, err := c.Write(batch.Bytes()); err != nil {
					t.Errorf("%s: send: %v", f.name, err)
					return
				}
				for ; unread > 0; unread-- {
					if err := harness.CopyReply(&replies, c.R); err != nil || replies.Bytes()[0] == '-' {
						t.Errorf("%s: %.100q, %v", f.name, replies.Bytes(), err)
						return
					}
					replies.Reset()
				}
				batch.Reset()
			}
		})
	}
	clients.Wait()
}

// TestMemoryIsBounded floods celld with what takes most memory, and reads the peak of what was resident.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const maxMemory = 64 << 20
	const bound = maxMemory + maxMemory/2 + 64<<20 // docs/reference/bounds.md, Memory
	for _, flags := range []string{"--appendonly no", "--appendonly yes --appendfsync everysec", "--appendonly yes --appendfsync always"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			srv := harness.Spec{ // with 64 CPUs Go itself holds some MB more: 161 MB were measured
				Flags: append(strings.Fields(flags), "--maxmemory", fmt.Sprint(maxMemory)),
				Env:   []string{fmt.Sprint("GOMAXPROCS=", min(8, runtime.GOMAXPROCS(0)))},
			}.Start(t)
			for _, f := range floods(maxMemory) {
				f.run(t, srv)
				peak := procStatus(t, srv.Cmd.Process.Pid, "VmHWM")
				t.Logf("%s: peak of resident memory %d MB", f.name, peak>>20)
				if peak > bound {
					t.Fatalf("after %s the peak of resident memory is %d MB, and the bound %d", f.name, peak>>20, bound>>20)
				}
			}
		})
	}
}

// TestContainer runs celld as examples/kubernetes.yaml does: a container of 256 MiB, and nothing said of memory.
func TestContainer(t *testing.T) {
	t.Parallel()
	const limit, half = 256 << 20, 128 << 20
	s := harness.Spec{Dir: t.TempDir(), Flags: []string{"--appendonly", "yes"}}
	cgroup := newCgroup(t, limit)
	if cgroup != "" {
		s.Wrap = []string{"sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, cgroup}
	} else { // no rights to make one: the same by hand
		s.Flags = append(s.Flags, "--maxmemory", "128mb")
	}
	srv := s.Start(t)
	first, _, _ := strings.Cut(srv.Log.String(), "\n")
	if want := `"maxmemory":"128mb","maxmemory_from":"cgroup"`; cgroup != "" && !strings.Contains(first, want) {
		t.Errorf("the first line of the log has no %s: %s", want, first)
	}
	c := harness.Dial(t, srv.Addr)
	if got := harness.Pairs(t, c.Do("CONFIG", "GET", "maxmemory"))["maxmemory"]; got != fmt.Sprint(half) {
		t.Errorf("maxmemory is %s", got)
	}
	for _, f := range floods(half)[1:2] {
		f.run(t, srv)
	}
	if peak := procStatus(t, srv.Cmd.Process.Pid, "VmHWM"); peak > limit {
		t.Errorf("the peak of resident memory is %d MB", peak>>20)
	}
	srv.Alive()
}

// newCgroup makes a cgroup with a limit, v2 or v1, until the test ends, and returns its directory, or "" where that is not allowed.
func newCgroup(t *testing.T, limit int) string {
	t.Helper()
	for _, v := range []struct{ top, file string }{{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}} {
		if _, err := os.Stat(filepath.Join(v.top, "cgroup.procs")); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(v.top, "celld-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, v.file), fmt.Append(nil, limit), 0) == nil {
			return dir
		}
	}
	return ""
}

// A client cannot make the process take more than its bound by leaving a few keys of each size in place.
func TestMemoryBoundWithGaps(t *testing.T) {
	t.Parallel()
	const most = 24 << 20
	const bound = most*3/2 + 64<<20
	srv := harness.Start(t, "--maxmemory", "24mb", "--max-keys", "1000000")
	c := harness.Dial(t, srv.Addr)
	pipeline := func(n int, command func(i int) []string) {
		for at := 0; at < n; at += 100 {
			var all []byte
			for i := at; i < at+100; i++ {
				all = append(all, harness.Frame(command(i)...)...)
			}
			c.Send(all)
			for range 100 {
				if got := c.Reply(); strings.HasPrefix(got, "-") {
					t.Fatal(got)
				}
			}
		}
	}
	for _, buckets := range []int{128, 112, 96, 88, 80, 72, 64, 60, 56, 52, 48, 44, 40, 36, 32} {
		key := func(i int) string { return fmt.Sprintf("%d:%d", buckets, i) }
		n, inSpan := most/2/(176+8*buckets), 1024/buckets // of 8 KB
		limit := fmt.Sprintf("9/1h,algo=slide,buckets=%d", buckets)
		pipeline(n, func(i int) []string { return []string{"CL.TAKE", key(i), limit} })
		pipeline(n, func(i int) []string {
			if i%inSpan == 0 {
				return []string{"PING"}
			}
			return []string{"DEL", key(i)}
		})
		if rss := vmRSS(t, srv.Cmd.Process.Pid); rss > bound {
			t.Errorf("after %d buckets, resident memory is %d MB of %d", buckets, rss>>20, bound>>20)
		}
	}
}
