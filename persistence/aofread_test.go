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

// What the commands of Redis's append-only files leave behind.
func TestAOFCommands(t *testing.T) {
	at := fmt.Sprint(t0 + 9*second)
	a, b := store.Value{TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry}, store.Value{TAT: uint64(t0 + 9*second), ExpiryNS: t0 + 5*second}
	for _, test := range []struct {
		name   string
		text   string
		want   map[string]store.Value
		others string
	}{
		{"nothing", "", nil, ""},
		{"set", aofText("SET a "+at, fmt.Sprint("set b ", at, " pxat ", (t0+5*second)/1e6)), map[string]store.Value{"a": a, "b": b}, ""},
		{"past", aofText("SET a "+at, fmt.Sprint("SET a ", at, " PXAT ", (t0-second)/1e6), fmt.Sprint("SET b ", t0)), nil, ""},
		{"no longer a limit", aofText("SET a "+at, "SET a word"), nil, "1 string"},
		{"other options", aofText("SET a "+at, "SET a "+at+" EX 5", "SET a "+at+" PXAT x"), map[string]store.Value{"a": a}, "2 SET"},
		{"flushed", aofText("SET a "+at, "FLUSHALL", "SET b "+at), map[string]store.Value{"b": a}, ""},
		{"flushed, async", aofText("SET a "+at, "flushall ASYNC", "SET b "+at, "FLUSHDB SYNC"), nil, ""},
		{"flushed from elsewhere", aofText("SET a "+at, "SELECT 3", "SET b "+at, "FLUSHALL"), nil, "1 database 3"},
		{"flushed elsewhere", aofText("SET a "+at, "SELECT 3", "FLUSHDB", "SELECT 0", "DEL b"), map[string]store.Value{"a": a}, "1 database 3"},
		{"ECHO", aofText("SET a "+at, "ECHO hello", "PING"), map[string]store.Value{"a": a}, "1 PING"},
		{"a transaction", aofText("MULTI", "SET a "+at, "EXEC"), map[string]store.Value{"a": a}, ""},
		{"annotations", "#TS:1700000000\r\n" + aofText("SET a "+at) + "#any\n#\n", map[string]store.Value{"a": a}, ""},
		{"zeros", aofText("SET a "+at) + strings.Repeat("\x00", 3<<20), map[string]store.Value{"a": a}, ""},
		{"torn", aofText("SET a "+at) + "*3", map[string]store.Value{"a": a}, ""},
		{"a torn annotation", aofText("SET a "+at) + "#TS:17", map[string]store.Value{"a": a}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, files := inMemory(t, appendOnly)
			files.put(w.path("appendonly.aof"), []byte(test.text))
			w.mustOpen().expect(test.want)
			if got := w.m.Status().Loaded.OthersText(); got != test.others {
				t.Errorf("left out: %s, want %s", got, test.others)
			}
			w.put("c", a)
			want := w.states()
			w.reopen().expect(want)
		})
	}
}

// The append-only files of Redis 7: a base and what followed. From then on ours is extended.
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

// Of Redis's files only the last may end in the middle: the others were whole when the next was begun.
func TestRedis7FilesThatEndInTheMiddle(t *testing.T) {
	at := fmt.Sprint(t0 + 9*second)
	for _, torn := range []string{"*3\r\n$3\r\nSE", "*3\r\n$3\r\nSET\x00\x00\x00\x00", "\x00\x00", "*1\r\n$5\r\nMULTI\r\n"} {
		for name, good := range map[string]bool{"1.base": false, "1.incr": false, "2.incr": true} {
			w, files := inMemory(t, appendOnly)
			manifest := ""
			for i, part := range []string{"1.base", "1.incr", "2.incr"} {
				text := aofText(fmt.Sprintf("SET %d %s", i, at))
				if part == name {
					text += torn
				}
				files.put(w.path("appendonlydir/appendonly.aof."+part+".aof"), []byte(text))
				manifest += fmt.Sprintf("file appendonly.aof.%s.aof seq %s type %s\n", part, part[:1], part[2:3])
			}
			files.put(w.path("appendonlydir/appendonly.aof.manifest"), []byte(manifest))
			err := w.open()
			switch {
			case good && (err != nil || len(w.states()) != 3):
				t.Errorf("%q behind %s: %v, %v", torn, name, err, w.states())
			case !good && (err == nil || !strings.Contains(err.Error(), name+".aof: damaged at byte ") ||
				!strings.Contains(err.Error(), "not the last")):
				t.Errorf("%q behind %s: %v", torn, name, err)
			case !good && !strings.HasSuffix(files.text(w.path("appendonlydir/appendonly.aof."+name+".aof")), torn):
				t.Errorf("%q behind %s: the file was changed", torn, name)
			}
		}
	}
}

// What is no append-only file is refused, and left as it is.
func TestAOFDamage(t *testing.T) {
	good := aofText(fmt.Sprint("SET a ", t0+9*second))
	for _, text := range []string{
		"x", "\r\n", "*\r\n", "*x\r\n", "*-1\r\n", "*0\r\n", "*1\n$4\r\nPING\r\n", "*1\r\n4\r\nPING\r\n", "*1\r\n$4\r\nPINGx\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\rPING\r\n",
		"*1048577\r\n", "*1\r\n$536870913\r\n", "*99999999999999999999\r\n", "*1\r\n:1\r\n", "PING\r\n", "#" + strings.Repeat("x", 1<<20), "\x00\x00x",
		"*2\r\n$4\r\nECHO\r\n$36\r\n1700000000000000000 0123456789abcdef\r\n", "REDIS0009",
	} {
		w, files := inMemory(t, appendOnly)
		files.put(w.path("appendonly.aof"), []byte(good+text+good))
		err := w.open()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("damaged at byte %d: ", len(good))) && !strings.Contains(text, "ECHO") {
			t.Errorf("%.50q: %v", text, err)
		}
		if got := files.text(w.path("appendonly.aof")); got != good+text+good {
			t.Errorf("%.50q: now it has %.100q", text, got)
		}
	}
}

// cpuTime is what this process has had of the CPUs. Unlike the time that passes, it is the same on a loaded machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A command that is larger than what is read at once takes time by its length, not by its square.
func TestAOFLargeCommands(t *testing.T) {
	at := fmt.Sprint(t0 + 9*second)
	for name, large := range map[string]string{
		"a long word": "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8000000\r\n" + strings.Repeat("x", 8_000_000) + "\r\n",
		"many words":  "*1000000\r\n$3\r\nDEL\r\n" + strings.Repeat("$1\r\nx\r\n", 999_999),
		"a long line": "*3\r\n$3\r\nSET\r\n$" + strings.Repeat("0", 3_000_000) + "1\r\nb\r\n$1\r\n5\r\n",
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

// A file may become shorter, or a read fail, while it is read.
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

// After the clock was set back, what is decided from then on is not set back by the next start as well.
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
