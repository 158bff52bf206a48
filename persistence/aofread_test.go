package persistence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
