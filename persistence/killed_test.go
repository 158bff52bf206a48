package persistence_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/persistence"
	"celld/store"
)

var killedSeed = flag.Uint64("killed-seed", 0, "of TestKilledWhileManyCall; 0: the time")

// killedLimits are one of each kind. Nothing flows back while a test runs.
var killedLimits = []string{"20/300d,algo=window", "20/300d,algo=slide", "20/300d,algo=slide,buckets=5", "20/300d,algo=log",
	"1/1h,burst=20", "3000/300d,algo=window", "3000/300d,algo=slide", "3000/300d,algo=slide,buckets=5", "3000/300d,algo=log",
	"1/1h,burst=3000", "CL.THROTTLE"}

// counted is a key, and how many of its calls have passed.
type counted struct {
	key   []byte
	limit *cell.Limit // nil: that of bucket
	begun atomic.Int64
	acked atomic.Int64 // their Commit returned
	left  int64        // that check found
}

// killed is a Disk that is killed over and over while goroutines call.
type killed struct {
	t       *testing.T
	rnd     *rand.Rand
	w       *world
	files   *memoryFS
	startNS int64
	began   time.Time
	keys    []*counted
	bucket  cell.Bucket
}

func (k *killed) nowNS() int64 { return k.startNS + int64(time.Since(k.began)) }

// open begins a process on these files.
func (k *killed) open(files *memoryFS) *world {
	k.t.Helper()
	w := &world{t: k.t, now: k.nowNS(), files: files, set: func(o *persistence.Options) { always(o); o.Clock = k.nowNS }}
	w.background = func(step func() bool) {
		for step() {
			runtime.Gosched()
		}
	}
	return w.mustOpen()
}

// ask takes so many calls of a key, or tells with 0 how many it has counted.
func (k *killed) ask(w *world, c *counted, cost int64) (passed bool, used int64) {
	a := store.Access{NowNS: k.nowNS()}
	var d cell.Decision
	var err error
	if c.limit == nil {
		d, err = w.store.Throttle(c.key, k.bucket, cost, a)
	} else {
		calls := []store.Call{{Key: c.key, Limit: c.limit}}
		_, err = w.store.Take(calls, store.TakeOptions{Cost: cost}, a)
		d = calls[0].Decision
	}
	if err != nil {
		k.t.Error(err)
	}
	return !d.Limited, d.Limit - d.Remaining
}

// check starts on what would be there if this process were killed now.
func (k *killed) check() *memoryFS {
	k.t.Helper()
	least := make([]int64, len(k.keys))
	for i, c := range k.keys {
		least[i] = c.acked.Load()
	}
	image := k.files.image(k.rnd.IntN(2) == 0)
	text := image.text("appendonly.aof")
	if k.rnd.IntN(3) == 0 {
		text += "*3\r\n$3\r\nSE" // the start of a write
		image.put("appendonly.aof", []byte(text))
	}
	next := k.open(image)
	for i, c := range k.keys {
		if _, c.left = k.ask(next, c, 0); c.left < least[i] || c.left > c.begun.Load() {
			k.t.Fatalf("%s: %d are counted, of %d that were answered and %d that were asked; the file has %d bytes\n%s",
				c.key, c.left, least[i], c.begun.Load(), len(text), next.log)
		}
	}
	next.m.Stop()
	if err := next.m.Close(false); err != nil {
		k.t.Error(err)
	}
	return image
}

// grow adds keys of each limit.
func (k *killed) grow() {
	for range 2 {
		for i, text := range killedLimits {
			c := &counted{key: fmt.Appendf(nil, "key:%d:%d", len(k.keys), i)}
			if text != "CL.THROTTLE" {
				l, err := cell.ParseLimit(text)
				if err != nil {
					k.t.Fatal(err)
				}
				c.limit = &l
			}
			k.keys = append(k.keys, c)
		}
	}
}

// call is one round of a caller: some calls, and one in four times a key that makes the table grow.
func (k *killed) call(rnd *rand.Rand, name string, i int) {
	k.w.m.Begin()
	var passed []*counted
	for range 1 + rnd.IntN(8) {
		c := k.keys[rnd.IntN(len(k.keys))]
		c.begun.Add(1)
		if ok, _ := k.ask(k.w, c, 1); ok {
			passed = append(passed, c)
		} else {
			c.begun.Add(-1)
		}
	}
	if rnd.IntN(4) == 0 {
		k.ask(k.w, &counted{key: fmt.Append(nil, name, i%300)}, 1)
	}
	if err := k.w.m.Commit(); err != nil {
		k.t.Error(err)
	}
	for _, c := range passed {
		c.acked.Add(1)
	}
}

// run is a process with three callers, whose files are rewritten over and over. It returns the files for the next process.
func (k *killed) run(name string) (left *memoryFS) {
	var stop atomic.Bool
	var others sync.WaitGroup
	for n := range 3 {
		rnd := rand.New(rand.NewPCG(k.rnd.Uint64(), 0))
		others.Go(func() {
			for i := 0; !stop.Load(); i++ {
				k.call(rnd, fmt.Sprint(name, n), i)
			}
		})
	}
	others.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if i%8 == 7 {
				_ = k.w.m.BackgroundSave(false)
			} else {
				_ = k.w.m.Rewrite()
			}
			k.w.m.Tick()
			time.Sleep(time.Millisecond / 2)
		}
	})
	for range 5 {
		left = k.check()
	}
	stop.Store(true)
	others.Wait()
	k.w.m.Stop()
	st := k.w.m.Status()
	for _, err := range []error{k.w.m.Close(false), st.RewriteErr, st.SaveErr} {
		if err != nil && !errors.Is(err, persistence.ErrStopping) {
			k.t.Error(err)
		}
	}
	k.t.Logf("%d rewrites, %d snapshots, %d bytes", st.Rewrites, st.Saves, st.AOFSize)
	return left
}

// A process is killed at any moment: its files hold what it answered, while callers call, the table grows and the files are rewritten,
// and even if the clock is behind at each start.
func TestKilledWhileManyCall(t *testing.T) {
	seed := *killedSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: -killed-seed %d", seed)
	k := &killed{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), startNS: t0, began: time.Now()}
	k.bucket, _ = cell.NewBucket(19, 1, 3600)
	backNS := second * k.rnd.Int64N(2)
	k.files = newMemory()
	processes := 3
	if celldtest.Thorough {
		processes = 7
	}
	for process := range processes {
		k.startNS, k.began = k.nowNS()-backNS, time.Now()
		k.w = k.open(k.files)
		for _, c := range k.keys {
			_, used := k.ask(k.w, c, 0)
			if used != c.left {
				t.Fatalf("%s: %d are counted, and %d were; %s", c.key, used, c.left, k.w.log)
			}
			c.acked.Store(used)
			c.begun.Store(used)
		}
		k.grow()
		k.files = k.run(fmt.Sprint("other:", process, ":"))
	}
}
