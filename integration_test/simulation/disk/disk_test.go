package disk

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"celld/persistence/dir"

	_ "pgregory.net/rapid" // for its flags, which all tests here are given
)

func write(t *testing.T, f dir.File, text string) {
	t.Helper()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func appended(t *testing.T, m *Mount, name string) dir.File {
	t.Helper()
	f, err := m.Append(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// outcomes are what a file may hold after a loss of power, over many draws; "gone" where it is not there.
func outcomes(t *testing.T, reorders bool, prepare func(m *Mount, d *Disk)) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for seed := range uint64(200) {
		d := New(rand.New(rand.NewPCG(seed, 1)))
		d.Reorders = reorders
		m := d.Mount()
		prepare(m, d)
		m.Unmount()
		d.LosePower()
		text, ok := d.Files()["/f"]
		if !ok {
			text = []byte("gone")
		}
		seen[string(text)] = true
	}
	return seen
}

func only(t *testing.T, what string, seen map[string]bool, want ...string) {
	t.Helper()
	for _, text := range want {
		if !seen[text] {
			t.Errorf("%s: %q never comes", what, text)
		}
		delete(seen, text)
	}
	for text := range seen {
		t.Errorf("%s: %q", what, text)
	}
}

func TestLosePower(t *testing.T) {
	only(t, "synced", outcomes(t, false, func(m *Mount, _ *Disk) {
		f := appended(t, m, "/f")
		write(t, f, "ab")
		_ = f.Sync()
	}), "ab")
	only(t, "not synced", outcomes(t, false, func(m *Mount, _ *Disk) {
		f := appended(t, m, "/f")
		write(t, f, "a")
		_ = f.Sync()
		write(t, f, "b")
		write(t, f, "c")
	}), "a", "ab", "abc")
	only(t, "not synced, by a disk that reorders", outcomes(t, true, func(m *Mount, _ *Disk) {
		f := appended(t, m, "/f")
		write(t, f, "b")
		write(t, f, "c")
	}), "", "b", "\x00", "\x00c", "bc")
	only(t, "a name that is not synced", outcomes(t, false, func(m *Mount, _ *Disk) {
		f, _ := m.Create("/f")
		write(t, f, "a")
		_ = f.Sync()
	}), "gone", "a")
	only(t, "renamed", outcomes(t, false, func(m *Mount, _ *Disk) {
		f, _ := m.Create("/temp")
		write(t, f, "a")
		_ = f.Sync()
		if err := m.Rename("/temp", "/f"); err != nil {
			t.Fatal(err)
		}
	}), "a")
	only(t, "written before a sync that failed", outcomes(t, false, func(m *Mount, d *Disk) {
		f := appended(t, m, "/f")
		write(t, f, "a")
		d.SetFail(func(op Op, _ string) error {
			if op == Sync {
				return syscall.EIO
			}
			return nil
		})
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		d.SetFail(nil)
		_ = f.Sync()
	}), "", "a")
}

// A process that was killed has written what it has written, holds no lock, and can do nothing more.
func TestUnmount(t *testing.T) {
	d := New(rand.New(rand.NewPCG(1, 1)))
	m, other := d.Mount(), d.Mount()
	f := appended(t, m, "/f")
	write(t, f, "a")
	if _, err := m.Lock("/lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Lock("/lock"); !errors.Is(err, dir.ErrInUse) {
		t.Errorf("a second lock: %v", err)
	}
	m.Unmount()
	if _, err := f.Write([]byte("b")); err == nil {
		t.Error("it still writes")
	}
	if _, err := other.Lock("/lock"); err != nil {
		t.Error(err)
	}
	if text := string(d.Files()["/f"]); text != "a" {
		t.Errorf("%q", text)
	}
}

// A disk that is full takes a part of a write.
func TestFullDisk(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		d := New(rand.New(rand.NewPCG(seed, 1)))
		f := appended(t, d.Mount(), "/f")
		d.SetFail(func(Op, string) error { return syscall.ENOSPC })
		n, err := f.Write([]byte("ab"))
		text := string(d.Files()["/f"])
		if !errors.Is(err, syscall.ENOSPC) || n != len(text) {
			t.Fatalf("%d, %v, %q", n, err, text)
		}
		seen[text] = true
	}
	only(t, "full", seen, "", "a", "ab")
}
