//go:build !race

package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/persistence"
	"celld/persistence/aof"
	"celld/store"
)

// A file that is cut off anywhere is read up to there, or refused, and holds no limit that was not in it.
func TestAFileThatIsCut(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"dump.rdb": snapshots, "appendonly.aof": appendOnly} {
		t.Run(name, func(t *testing.T) {
			w := smallFile(t, set)
			want, whole := w.states(), w.read(name)
			var keys []int
			if name == "appendonly.aof" {
				keys = wholeCommands(t, whole, want)
			}
			for n := range len(whole) {
				w.write(name, whole[:n])
				if err := w.open(); err != nil {
					if name == "appendonly.aof" || !strings.Contains(err.Error(), "damaged at byte") {
						t.Fatalf("cut at %d: %v", n, err)
					}
					continue
				}
				w.onlyFrom(want)
				if name == "dump.rdb" {
					t.Fatalf("a snapshot of %d bytes of %d is taken for whole", n, len(whole))
				}
				if got := len(w.states()); got != keys[n] {
					t.Fatalf("cut at %d: %d keys, want %d", n, got, keys[n])
				}
				w.m.Stop()
			}
		})
	}
}

// The power fails anywhere: up to there the file is intact, and from there it is zeros, as many as the write would have added. The
// whole commands before them are read, and the log names the rest.
func TestAFileThatEndsInZeros(t *testing.T) {
	w, files := inMemory(t, appendOnly)
	w.writeSmallFile()
	path := w.path("appendonly.aof")
	want, whole := w.states(), files.text(path)
	keys := wholeCommands(t, whole, want)
	for n := range keys {
		for _, zeros := range []int{1, 100, 3 << 20} {
			if zeros > 100 && n%64 != 0 {
				continue // it takes 3 ms
			}
			files.put(path, []byte(whole[:n]+strings.Repeat("\x00", zeros)))
			w.mustOpen().onlyFrom(want)
			if got := len(w.states()); got != keys[n] {
				t.Fatalf("%d zeros from byte %d on: %d keys, want %d", zeros, n, got, keys[n])
			}
			left := files.text(path)
			if !strings.HasPrefix(whole[:n], left) || !strings.Contains(w.log.String(), fmt.Sprint(" bytes_lost=", n+zeros-len(left))) {
				t.Fatalf("%d zeros from byte %d on: %d bytes are left: %s", zeros, n, len(left), w.log)
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			if zeros == 1 {
				continue
			}
			if w.mustOpen(); len(w.states()) != keys[n] || strings.Contains(w.log.String(), "bytes_lost") {
				t.Fatalf("%d zeros from byte %d on: the next start: %d keys: %s", zeros, n, len(w.states()), w.log)
			}
			w.m.Stop()
		}
	}
}

// wholeCommands returns, for each length of a file, how many of the keys' commands are in units that are whole in so many first bytes.
func wholeCommands(t *testing.T, file string, of map[string]store.Value) []int {
	counts := make([]int, len(file)+1)
	for key := range of {
		at := strings.Index(file, fmt.Sprintf("SET\r\n$%d\r\n%s\r\n", len(key), key))
		end := at + strings.Index(file[at:], "\r\n*") + 2
		if exec := strings.Index(file[at:], aof.Exec); exec >= 0 {
			end = at + exec + len(aof.Exec)
		}
		for n := end; n <= len(file); n++ {
			counts[n]++
		}
	}
	if counts[len(file)] != len(of) || counts[0] != 0 {
		t.Fatalf("%d keys in %q, want %d", counts[len(file)], file, len(of))
	}
	return counts
}

// Zeros with anything behind them are damage, wherever they are: more was written, and clients may have been told so.
func TestAFileWithZerosInside(t *testing.T) {
	w, files := inMemory(t, appendOnly)
	w.writeSmallFile()
	path := w.path("appendonly.aof")
	want, whole := w.states(), files.text(path)
	for n := range len(whole) - 1 {
		for _, zeros := range []int{1, 2, 40, len(whole)} {
			end := min(n+zeros, len(whole)-1)
			damaged := whole[:n] + strings.Repeat("\x00", end-n) + whole[end:]
			files.put(path, []byte(damaged))
			if err := w.open(); err == nil {
				if w.onlyFrom(want); len(w.states()) == len(want) {
					continue // the last stamp, behind which there is none that would notice
				}
			} else if strings.Contains(err.Error(), "damaged at byte") && files.text(path) == damaged {
				continue
			}
			t.Fatalf("%d zeros from byte %d on: %s", end-n, n, w.log)
		}
	}
}

// Any wrong byte is noticed, or makes no difference.
func TestAFileWithAWrongByte(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"dump.rdb": snapshots, "appendonly.aof": appendOnly} {
		t.Run(name, func(t *testing.T) {
			w := smallFile(t, set)
			want, whole := w.states(), w.read(name)
			flips := []byte{0xff, 1, 0x20}
			if !celldtest.Thorough {
				flips = nil
			}
			refused := 0
			for i := range whole {
				for _, flip := range append(flips, byte(1+rand.IntN(255))) {
					damaged := []byte(whole)
					damaged[i] ^= flip
					w.write(name, string(damaged))
					if err := w.open(); err == nil {
						w.onlyFrom(want)
						w.m.Stop()
					} else if refused++; !strings.Contains(err.Error(), "damaged at byte") {
						t.Fatalf("byte %d ^ %#x: %v", i, flip, err)
					} else if w.read(name) != string(damaged) {
						t.Fatalf("byte %d ^ %#x: the file was changed", i, flip)
					}
				}
			}
			if all := (len(flips) + 1) * len(whole); refused < all/2 {
				t.Errorf("only %d of %d files were refused", refused, all)
			}
		})
	}
}

// A file is cut anywhere, or any byte of it is wrong: nothing is loaded that was never there.
func TestDamagedFilesWithLimits(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"dump.rdb": snapshots, "appendonly.aof": appendOnly} {
		w, files, h := smallLimits(t, set)
		whole := files.text(w.path(name))
		load := func(what, text string) {
			files.put(w.path(name), []byte(text))
			err := w.open()
			if err == nil {
				h.check(t, what, w)
				w.m.Stop()
			} else if !strings.Contains(err.Error(), "damaged at byte") {
				t.Fatalf("%s: %v", what, err)
			}
		}
		for n := range len(whole) {
			if !celldtest.Thorough && rand.IntN(4) > 0 {
				continue
			}
			load(fmt.Sprintf("%s cut at %d", name, n), whole[:n])
			if rand.IntN(3) > 0 {
				continue
			}
			damaged := []byte(whole)
			damaged[n] ^= byte(1 + rand.IntN(255))
			load(fmt.Sprintf("%s, byte %d of %#x", name, n, damaged[n]), string(damaged))
		}
	}
}

// A cut file still yields all that was whole.
func TestATransactionThatIsCutOff(t *testing.T) {
	w, files, _ := smallLimits(t, appendOnly)
	path := w.path("appendonly.aof")
	whole := files.text(path)
	last := strings.LastIndex(whole, "MULTI")
	last = strings.LastIndex(whole[:last], "*")
	end := strings.Index(whole[last:], "EXEC\r\n") + last
	files.put(path, []byte(whole[:last]))
	want := w.mustOpen().texts()
	w.m.Stop()
	if want["key k"] == "" {
		t.Fatalf("%v", want)
	}
	for n := last + 1; n < end+len("EXEC\r\n"); n++ {
		files.put(path, []byte(whole[:n]))
		w.mustOpen().expectTexts(want)
		if got := files.text(path); got != whole[:last] {
			t.Fatalf("cut at %d, the file is cut to %d", n, len(got))
		}
		w.take("k", 1, "3/1h,algo=window")
		then := w.texts()
		w.reopen().expectTexts(then) // what is appended behind the cut gets the right checksum
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
	}
}
