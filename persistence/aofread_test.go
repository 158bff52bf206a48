package persistence_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/resp/wire"
	"celld/store"
)

// aofText is an append-only file of commands that are written as in a shell.
func aofText(commands ...string) string {
	var text []byte
	for _, command := range commands {
		text = wire.AppendCommand(text, strings.Fields(command)...)
	}
	return string(text)
}

// Redis 7 leaves a base and what followed. From then on, celld extends its own file.
func TestRedis7Files(t *testing.T) {
	w, files := inMemory(t, snapshots)
	w.mustOpen()
	w.fillWith(fewStates())
	want := w.states()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	redis7Files(files, w)
	w.set = always
	w.mustOpen().expect(want)
	w.put("new", store.Value{TAT: uint64(t0 + 90*second)})
	w.commit()
	want = w.states()
	w.replays(files.image(true), want)
	w.reopen().expect(want)
}

// cpuTime is the CPU time of this process so far. Unlike wall time, it is the same on a loaded machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A command that is larger than one read takes time by its length, not by its square.
func TestAOFLargeCommands(t *testing.T) {
	at := fmt.Sprint(t0 + 9*second)
	for name, large := range map[string]string{
		"a long word": "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8000000\r\n" + strings.Repeat("x", 8_000_000) + "\r\n",
		"many words":  "*1000000\r\n$3\r\nDEL\r\n" + strings.Repeat("$1\r\nx\r\n", 999_999),
		"a long line": "*3\r\n$3\r\nSET\r\n$" + strings.Repeat("0", 3_000_000) + "1\r\nb\r\n$1\r\nx\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w, files := inMemory(t, appendOnly)
			text := aofText("SET a "+at) + large
			files.put(w.path("appendonly.aof"), []byte(text+aofText("SET c "+at)))
			began := cpuTime(t)
			w.mustOpen()
			if took := cpuTime(t) - began; took > 5*time.Second {
				t.Errorf("it took %v of CPU time", took)
			}
			if n := len(w.states()); n != 2 {
				t.Errorf("%d keys, want 2", n)
			}
			files.put(w.path("appendonly.aof"), []byte(text[:len(text)-1]))
			w.mustOpen()
			if n := len(w.states()); n != 1 {
				t.Errorf("%d keys, want 1", n)
			}
		})
	}
}

// A file may become shorter while it is read, and a read may fail.
func TestReadsThatFail(t *testing.T) {
	for name, set := range map[string]string{"dump.rdb": "snapshot", "appendonly.aof": "append-only"} {
		w, files := inMemory(t, snapshots)
		if set == "append-only" {
			w.set = appendOnly
		}
		w.mustOpen()
		w.fillWith(fewStates())
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		lost := errors.New("a bad sector")
		files.failing(func(call, _ string) error {
			if call == "read" {
				return lost
			}
			return nil
		})
		if err := w.open(); !errors.Is(err, lost) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		text := files.text(w.path(name))
		files.failing(func(call, _ string) error {
			if call == "read" {
				files.failing(nil)
				files.shorten(w.path(name), len(text)/2)
			}
			return nil
		})
		if err := w.open(); err == nil {
			t.Errorf("%s: half a file is taken for whole", name)
		}
	}
}

// After the clock was set back, the next start does not set back the later decisions, too.
func TestTheClockWasSetBackAndThen(t *testing.T) {
	w, _ := inMemory(t, always)
	w.mustOpen()
	w.put("before", store.Value{TAT: uint64(t0 + 90*second)})
	w.commit()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.now -= 3600 * second
	w.mustOpen()
	w.put("after", store.Value{TAT: uint64(w.now + 90*second)})
	w.commit()
	want := w.states()
	w.pass(second)
	w.reopen().expect(want)
}

// redis7Files turns the snapshot into the files of Redis 7: a base and what followed.
func redis7Files(files *memoryFS, w *world) {
	files.put(w.path("appendonlydir/appendonly.aof.1.base.rdb"), []byte(files.text(w.path("dump.rdb"))))
	files.put(w.path("appendonlydir/appendonly.aof.1.incr.aof"), []byte("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"))
	files.put(w.path("appendonlydir/appendonly.aof.manifest"), fmt.Appendf(nil,
		"file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"))
	_ = files.Remove(w.path("appendonly.aof"))
	_ = files.Remove(w.path("dump.rdb"))
}
