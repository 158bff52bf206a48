package cgroup

import (
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"celld/resp"
	"celld/resp/config"
	"celld/store/memory"
)

func TestDefaultMaxMemory(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for container, want := range map[int64]int64{
		4096 * mb: 2048 * mb, 256 * mb: 128 * mb, 128 * mb: 42 * mb, 100 * mb: 24 * mb, 64 * mb: 8 * mb, 1 * mb: 0,
	} {
		got := defaultMaxMemory(container)
		if got != max(want, mb) {
			t.Errorf("of %d MB: %d, want %d", container/mb, got/mb, want/mb)
		}
		if container >= 100*mb && processBound(got) > container {
			t.Errorf("of %d MB: up to %d may be taken", container/mb, processBound(got)/mb)
		}
	}
}

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct{ maxMemory, container, want int64 }{
		{100 * mb, 0, 173 * mb}, {128 * mb, 256 * mb, 208 * mb}, {0, 0, math.MaxInt64}, {math.MaxInt64, 0, math.MaxInt64},
		{0, 1000 * mb, 900 * mb}, {1000 * mb, 1000 * mb, 900 * mb}, // more than the container has
	} {
		if got := heapLimit(c.maxMemory, 0, c.container); got != c.want {
			t.Errorf("%d in %d MB: %d MB, want %d", c.maxMemory/mb, c.container/mb, got/mb, c.want/mb)
		}
	}
}

// TestMemoryLimitFollows sets the limit of the process, so nothing runs beside it.
func TestMemoryLimitFollows(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	cfg := config.New()
	expect := func(maxMemory int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != heapLimit(maxMemory, 0, 0) {
			t.Errorf("the heap's limit is %d, want %d", got, heapLimit(maxMemory, 0, 0))
		}
	}
	limit(cfg, 0, slog.New(slog.DiscardHandler))
	expect(512 << 20)
	resp.NewServer(resp.Options{Config: cfg, Store: memory.New(memory.Options{})})
	for _, s := range cfg.Settings() {
		if s.Name == "maxmemory" {
			if err := s.Value.Set("100mb"); err != nil { // as CONFIG SET does
				t.Fatal(err)
			}
		}
	}
	expect(100 << 20)
	t.Setenv("GOMEMLIMIT", "1GiB")
	limit(config.New(), 0, slog.New(slog.DiscardHandler))
	expect(100 << 20)
}

// The heap's limit has room for what clients' buffers hold.
func TestHeapLimitWithClients(t *testing.T) {
	const mb = 1 << 20
	if got := heapLimit(100*mb, 40*mb, 0); got != (173+50)*mb {
		t.Errorf("%d MB", got/mb)
	}
	if got := heapLimit(math.MaxInt64/2, 0, 0); got != math.MaxInt64 {
		t.Errorf("%d", got)
	}
}

// Without a setting maxmemory follows from the container, and who may get too little is warned.
func TestLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	const mb = 1 << 20
	for _, c := range []struct {
		name      string
		given     bool
		set       int64
		container int64
		from      string
		want      int64
		warned    bool
	}{
		{"neither", false, 512 * mb, 0, "default", 512 * mb, false},
		{"a container", false, 512 * mb, 1000 * mb, "cgroup", 500 * mb, false},
		{"a small container", false, 512 * mb, 50 * mb, "cgroup", 6 * mb, true},
		{"both", true, 100 * mb, 1000 * mb, "setting", 100 * mb, false},
		{"just too much", true, 100*mb + 2, 214 * mb, "setting", 100*mb + 2, true},
		{"just not", true, 100 * mb, 214 * mb, "setting", 100 * mb, false},
		{"no bound in a container", true, 0, 214 * mb, "setting", 0, true},
		{"no bound elsewhere", true, 0, 0, "setting", 0, false},
		{"more than numbers have", true, math.MaxInt64, 1000 * mb, "setting", math.MaxInt64, true},
	} {
		var said strings.Builder
		cfg := config.New()
		cfg.MaxMemory.Put(c.set)
		if err := cfg.Load(func(string) bool { return c.given }); err != nil {
			t.Fatal(err)
		}
		if !c.given {
			fit(cfg, c.container)
		}
		limit(cfg, c.container, slog.New(slog.NewTextHandler(&said, nil)))
		if got := cfg.MaxMemory.Get(); cfg.MaxMemoryFrom != c.from || got != c.want || (said.Len() > 0) != c.warned || cfg.OnMemory != nil {
			t.Errorf("%s: %d from %s, said %q", c.name, got, cfg.MaxMemoryFrom, &said)
		}
	}
}
