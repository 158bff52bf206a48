//go:build !race

package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"celld/persistence"
	"celld/store"
	"celld/store/policy"
)

// units is a store in which calls, each of several changes, go on while its files are written, and all that it held between two of them.
type units struct {
	*world
	files *memoryFS
	rnd   *rand.Rand
	wide  int // bytes that each key is long

	mu     sync.Mutex      // guards what follows, and is not held while calls are written
	within []func()        // what is left of a transaction
	was    map[string]bool // the contents between two calls, by their text
	looks  int             // images that were read
	calm   bool            // they bring no calls
}

// contents are all that a store holds, as one text.
func (w *world) contents() string {
	var lines []string
	for name, text := range w.texts() {
		lines = append(lines, name+" "+text)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func newUnits(t testing.TB, seed uint64, wide int, set func(*persistence.Options)) *units {
	w, files := inMemory(t, set)
	u := &units{world: w, files: files, rnd: rand.New(rand.NewPCG(seed, 0)), wide: wide, was: map[string]bool{}}
	u.background = func(step func() bool) {
		for more := true; more; {
			more = step()
			if u.calm {
				continue
			}
			if u.m.Synchronous() {
				u.m.Begin()
			}
			for u.call(); u.m.Synchronous() && u.inCall(); u.call() {
			}
			if u.m.Synchronous() {
				u.m.Leave()
			}
		}
	}
	u.rest = func(do func()) bool {
		if u.inCall() {
			return false
		}
		do()
		return true
	}
	u.mustOpen()
	u.note()
	return u
}

func (u *units) note() { u.was[u.contents()] = true }

func (u *units) key() string {
	return strings.Repeat("x", u.wide) + string('a'+rune(u.rnd.IntN(12)))
}

// call does a call, or the next step of a transaction.
func (u *units) call() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.within) > 0 {
		u.within[0]()
		u.within = u.within[1:]
	} else {
		u.begin()
	}
	if len(u.within) == 0 {
		u.note()
	}
}

func (u *units) begin() {
	a, b := u.key(), u.key()
	tat := store.Value{TAT: uint64(t0 + 9000*second + u.rnd.Int64N(second))}
	switch u.rnd.IntN(8) {
	case 0, 1:
		limit := u.literal("90/366d")
		calls := []store.Call{{Key: []byte(a), Limit: &limit}, {Key: []byte(b), Limit: &limit}}
		_, _ = u.store.Take(calls, store.TakeOptions{Cost: 1}, store.Access{NowNS: u.now}) // an error where a key holds a TAT
	case 2, 3:
		did(u.store.Rename([]byte(a), []byte(b), store.Access{NowNS: u.now}))
	case 4:
		if a != b {
			did(u.store.Copy([]byte(a), []byte(b), true, store.Access{NowNS: u.now}))
		}
	case 5:
		u.put(a, tat)
	case 6:
		if u.rnd.IntN(9) == 0 {
			u.store.Flush()
		}
		u.setPolicy("p", fmt.Sprint(1+u.rnd.IntN(9), "/1h"), policy.Options{})
	default:
		for range 2 + u.rnd.IntN(20) {
			key := u.key()
			u.within = append(u.within, func() { u.put(key, tat) })
		}
		u.within = append(u.within, func() { u.store.Delete([]byte(a), u.now) },
			func() { u.setPolicy("q", fmt.Sprint(1+u.rnd.IntN(9), "/1h"), policy.Options{}) })
	}
}

// whole checks that a process that finds these files has what the store held between two calls.
func (u *units) whole(files *memoryFS, about string) {
	u.t.Helper()
	u.looks++
	next := &world{t: u.t, dir: u.dir, now: u.now, set: u.set, files: files}
	next.mustOpen()
	if is := next.contents(); !u.was[is] {
		narrow := strings.NewReplacer(strings.Repeat("x", max(1, u.wide)), "")
		text := narrow.Replace(files.text(u.path("appendonly.aof")))
		u.t.Fatalf("%s: a start finds what never was between two calls:\n%s\nin a file that ends in %q\n%s", about, narrow.Replace(is),
			text[max(0, len(text)-999):], narrow.Replace(u.contents()))
	}
	next.m.Release()
}

// A process that is killed, at any byte that it writes, leaves whole calls and transactions, whichever of their keys had been gathered and
// though the file is rewritten meanwhile. A disk that refuses writes now and then changes nothing of that.
func TestUnits(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"everysec": appendOnly, "always": always} {
		for _, wide := range []int{0, 9000} { // wide keys are gathered in several passes
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", wide, " ", fails), func(t *testing.T) {
					t.Parallel()
					for seed := range uint64(2) {
						synctest.Test(t, func(t *testing.T) {
							u := newUnits(t, seed, wide, set)
							u.lives(fails)
							if u.looks < 30 {
								t.Errorf("only %d images were read", u.looks)
							}
						})
					}
				})
			}
		}
	}
}

// FuzzUnits does the same for any seed.
func FuzzUnits(f *testing.F) {
	f.Add(uint64(99), uint16(0), false, false)
	f.Add(uint64(100), uint16(9000), true, true)
	f.Fuzz(func(t *testing.T, seed uint64, wide uint16, synced, fails bool) {
		set := appendOnly
		if synced {
			set = always
		}
		synctest.Test(t, func(t *testing.T) { newUnits(t, seed, int(wide)%20_000, set).lives(fails) })
	})
}

// lives lets calls and writes go on, and reads the files at any moment, and cut anywhere behind what was there before.
func (u *units) lives(fails bool) {
	chance, odds, looking := rand.New(rand.NewPCG(u.rnd.Uint64(), 1)), 6, false
	u.files.failing(func(call, name string) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if looking || call == "open" || call == "names" {
			return nil
		}
		looking = true
		if !u.m.Synchronous() || len(u.within) == 0 {
			u.whole(u.files.image(false), "before a "+call+" of "+name)
		}
		looking = false
		if fails && !strings.HasPrefix(name, "temp") && call == "write" && chance.IntN(odds) == 0 {
			return syscall.ENOSPC
		}
		return nil
	})
	for round := range 12 {
		for range u.rnd.IntN(9) {
			u.call()
		}
		for u.inCall() && (u.m.Synchronous() || u.rnd.IntN(2) == 0) {
			u.call()
		}
		before := len(u.files.text(u.path("appendonly.aof")))
		if u.m.Synchronous() {
			_ = u.commit()
		}
		u.tick(second)
		u.settle()
		u.cuts(before)
		if round%4 == 1 {
			odds = 2
			if err := u.m.Rewrite(); err != nil {
				u.t.Fatal(err)
			}
			u.settle()
			odds = 6
		}
	}
	u.files.failing(nil)
	u.calm = true
	for u.inCall() {
		u.call()
	}
	for u.tick(second); u.m.Status().AOFErr != nil; u.tick(second) {
		u.settle()
	}
	u.settle()
	if u.m.Synchronous() {
		if err := u.commit(); err != nil {
			u.t.Fatal(err)
		}
	}
	if err := u.close(); err != nil {
		u.t.Fatal(err)
	}
	u.was = map[string]bool{u.contents(): true}
	u.whole(u.files.image(false), "at the end")
}

func (u *units) inCall() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.within) > 0
}

// cuts reads the file cut at any byte from one on, or at some of very many.
func (u *units) cuts(from int) {
	text := u.files.text(u.path("appendonly.aof"))
	u.mu.Lock()
	defer u.mu.Unlock()
	step := 1 + max(0, len(text)-from)/60
	for at := from; at <= len(text); at += step {
		files := u.files.image(false)
		files.cutAt(u.path("appendonly.aof"), at)
		u.whole(files, fmt.Sprint("cut at ", at, " of ", len(text)))
	}
}
