package transport

import (
	"syscall"
	"testing"
)

// Connections leave files to the rest of the process, and the soft limit is raised as far as they need.
func TestMostConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	soft := min(900, limit.Max/2)
	fit := int64(soft) - 32
	hard := int64(min(limit.Max, 1<<40)) // as good as none
	for _, c := range []struct {
		name          string
		wanted, loops int64
		most          int64
		openFiles     uint64
	}{
		{"few", 10, 2, 10, soft},
		{"as many as the soft limit allows", fit, 2, fit, soft},
		{"one more", fit + 1, 2, fit + 1, limit.Max},
		{"8 loops", fit, 8, fit, soft},
		{"9 loops have descriptors, too", fit, 9, fit, limit.Max},
		{"as many as the hard limit allows", hard - 32, 2, hard - 32, limit.Max},
		{"one more than that", hard - 31, 2, hard - 32, limit.Max},
		{"far too many", 1 << 50, 100, hard - 216, limit.Max},
		{"more loops than there may be files", 10, 1 << 45, 1, limit.Max},
	} {
		if limit.Max > 1<<40 && c.wanted >= hard-32 {
			continue // there is no such limit
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: soft, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		if most, openFiles := MostConnections(c.wanted, c.loops); most != c.most || openFiles != c.openFiles {
			t.Errorf("%s: %d of %d files, want %d of %d", c.name, most, openFiles, c.most, c.openFiles)
		}
	}
}
