//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// workDir makes a temporary directory for the servers' files, in the system's or, where that is no disk, in the project's
// .cache.
func workDir(root string) (dir string, err error) {
	parent := os.TempDir()
	if kind, _ := fileSystem(parent); kind == "tmpfs" {
		parent = filepath.Join(root, ".cache")
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(parent, "celld-bench-")
}

// diskOf says where a directory lies, and how long an append takes to get there: "ext4 on /dev/sda1, 120 µs for …".
func diskOf(dir string) string {
	kind, device := fileSystem(dir)
	took, err := syncTime(dir)
	if err != nil {
		return fmt.Sprintf("%s on %s: %v", kind, device, err)
	}
	return fmt.Sprintf("%s on %s, %d µs for a write of 100 bytes and fdatasync", kind, device, took.Microseconds())
}

// fileSystem is the kind of file system that a path is on, and what it is mounted from.
func fileSystem(path string) (kind, device string) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	return parseMounts(string(mounts), path)
}

// parseMounts finds the longest mount point that a path is under, the last of equals, in lines of
// "device mountpoint kind options 0 0".
func parseMounts(mounts, path string) (kind, device string) {
	kind, device = "unknown", "unknown"
	longest := 0
	for line := range strings.Lines(mounts) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		at := strings.TrimSuffix(words[1], "/") + "/"
		if strings.HasPrefix(path+"/", at) && len(at) >= longest {
			longest, device, kind = len(at), words[0], words[2]
		}
	}
	return kind, device
}

// syncTime is the median of how long it takes to append a command to a file and have it on the disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range 201 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 100)); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// flushed is the time in which a server with everysec begins to write what there is.
const flushed = 1500 * time.Millisecond

// allWritten waits until a server has written nothing to disk for a while, and returns what it had written by then.
func (s *server) allWritten(b *bench) (int64, error) {
	const step = flushed / 5
	last, quiet := int64(-1), time.Duration(0)
	for deadline := time.Now().Add(time.Minute); quiet < flushed; quiet += step {
		if !b.sleep(step) {
			return 0, b.ctx.Err()
		}
		written, err := readWritten(s.pid())
		if err != nil {
			return 0, err
		}
		if written != last {
			last, quiet = written, 0
		}
		if time.Now().After(deadline) {
			return 0, errors.New("the server has been writing to disk for a minute")
		}
	}
	return last, nil
}
