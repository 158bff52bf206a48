package cgroup

import (
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"celld/resp"
	"celld/resp/config"
	"celld/store/memory"
)

func TestDefaultMaxMemory(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for container, want := range map[int64]int64{4096 * mb: 2048 * mb, 256 * mb: 128 * mb, 128 * mb: 42 * mb, 100 * mb: 24 * mb, 64 * mb: 8 * mb, 1 * mb: 0} {
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
	Limit(cfg, true, 0, slog.New(slog.DiscardHandler))
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
	Limit(config.New(), true, 0, slog.New(slog.DiscardHandler))
	expect(100 << 20)
}
