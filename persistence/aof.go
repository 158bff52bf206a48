package persistence

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/store/memory"
	"celld/store/policy"
)

const (
	gatherEvery = 400 * time.Millisecond // with ticks of 100 ms, no change is older than 0.5 s when it is gathered
	gatherSoon  = 1 << 16                // with more changes than this, gathering starts at once
	gatherBytes = 1 << 20                // of each of the two buffers
	retryEvery  = time.Second
)

// appendLog extends the append-only file.
//
// With EverySecond and Never, decisions only mark their keys. Twice a second, or when more than 65,536 keys are marked, the
// states of these keys are gathered in small steps, and a goroutine writes them. While it cannot write, only marks
// accumulate, so the memory in use stays at two buffers.
//
// A round begins once all of the one before is on the disk. So a crash loses what has changed since a round began, and no more: up to
// 0.5 s, or as long as a round takes where the disk is slow, and then as long as the next round takes. Where rounds overlapped, a third
// one would count.
//
// With Always, Commit gathers and writes what was decided, and the replies wait for it.
type appendLog struct {
	disk *Disk

	logFile
	rounds
	writeErr atomic.Pointer[error] // of the last write; nil: it succeeded
	active   atomic.Bool           // Start has been called
	lost     atomic.Bool           // some changes are not in the file, and the store will not tell them again: only a rewrite repairs it

	commits commits
	retry   every
}

// rounds are how changes get into the file with EverySecond and Never.
type rounds struct {
	gather    every
	gathering atomic.Bool
	behind    atomic.Bool // the round has ended for want of a buffer, and is to go on
	stepped   int64       // when the last step has ended, by Options.Clock; only step uses it
	buffer    []byte      // being filled; only step uses it
	long      []keptState // to be appended to it
	empty     chan []byte // two buffers in all
	full      chan []byte
	pending   atomic.Int64 // bytes that wait in full or are being written
	writing   sync.WaitGroup
	ended     chan struct{}
	dropped   error // why a buffer was given up at the end; read once writing is done
}

func newAppendLog(d *Disk) *appendLog {
	l := &appendLog{disk: d, retry: every{period: retryEvery}, logFile: logFile{clock: d.o.Clock, wallNS: d.wallNS},
		rounds: rounds{gather: every{period: gatherEvery}, ended: make(chan struct{}), empty: make(chan []byte, 2), full: make(chan []byte, 2)}}
	l.empty <- make([]byte, 0, 1<<10)
	l.empty <- make([]byte, 0, 1<<10)
	l.commits.L = &l.commits.Mutex
	l.commits.failed = make(map[int64]error)
	return l
}

// open opens the file. If what was loaded cannot be extended, it writes a new file first.
func (l *appendLog) open() error {
	d := l.disk
	if d.loaded.Rewrite {
		if err := d.rewriteWhole(true); err != nil {
			return fmt.Errorf("write the append-only file: %w", err)
		}
	}
	f, err := d.dir.FS.Append(d.paths.AppendOnly)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.mu.Lock()
	l.use(f, info.Size(), d.loaded.TailCRC)
	l.mu.Unlock()
	if d.o.Fsync == Always {
		_, _ = l.commit() // policies that flags have set; after an error tick tries again
	}
	l.writing.Go(l.write)
	l.active.Store(true)
	return nil
}

// use has the log extend a file of this size, with this checksum of what follows its last stamp. The log is locked.
//
// With EverySecond the kernel is told to forget the file as it grows. With Always that would not pay, as each write is
// small; with Never nothing is to be synced.
func (l *appendLog) use(f dir.File, size int64, crc uint64) {
	if l.disk.o.Fsync != Always && !l.disk.unsynced.Load() {
		f = &dir.Paced{File: f, Size: size, Done: size}
	}
	l.begin(f, size, crc)
}

// note remembers the result of the last write, and logs it when it changes.
func (l *appendLog) note(err error) {
	was := l.writeErr.Load()
	switch {
	case err == nil && was == nil:
		return
	case err == nil:
		l.writeErr.Store(nil)
		l.disk.log.Info("the append-only file can be written again", "file", l.disk.paths.AppendOnly)
	default:
		l.writeErr.Store(&err)
		if was == nil {
			l.disk.log.Error("the append-only file cannot be written", "file", l.disk.paths.AppendOnly, "error", err)
		}
	}
	l.disk.tellRefusal()
}

// failing returns why decisions do not reach the disk, or do not reach the file that the next start reads. nil: they do.
func (l *appendLog) failing() error {
	if a := l.disk.astray.Load(); a != nil {
		return a.why
	}
	if err := l.writeErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *appendLog) tick(nowNS int64) {
	if l.disk.o.Fsync == Always {
		if l.writeErr.Load() != nil && l.retry.due(nowNS) {
			err := l.tryAgain()
			if l.note(err); err == nil { // then write the changes of rounds that had begun before the disk refused
				l.disk.Begin()
				_ = l.disk.Commit()
			}
		}
		return
	}
	if l.pending.Load() == 0 && !l.gathering.Load() && (l.gather.due(nowNS) || l.disk.store.Changed() > gatherSoon) {
		l.gatherAll()
	}
}

// gatherAll has step run, unless it does.
func (l *appendLog) gatherAll() {
	if l.behind.Store(false); l.gathering.CompareAndSwap(false, true) {
		l.disk.background(l.step)
	}
}

// goOn goes on with a round that lacked a buffer.
func (l *appendLog) goOn() {
	d := l.disk
	if !l.behind.Load() {
		return
	}
	d.mu.Lock()
	if d.stopping.Load() {
		d.mu.Unlock()
		return
	}
	d.work.Add(1)
	d.mu.Unlock()
	defer d.work.Done()
	l.gatherAll()
}

// mostStep is the longest that a step gathers.
const mostStep = time.Millisecond

// step gathers changes, and says whether there are more. It takes as long as its loop has served callers since the last step, mostStep at
// most. With 64 changes a step, a loop that decided on 320 calls in each round fell behind: a change was written up to 6.7 s later.
func (l *appendLog) step() (more bool) {
	if l.buffer == nil {
		select {
		case b := <-l.empty:
			l.buffer = b[:0]
		default: // the disk is behind; marks wait
			l.behind.Store(true)
			l.gathering.Store(false)
			return false
		}
	}
	began := l.disk.o.Clock()
	for until := began + min(began-l.stepped, int64(mostStep)); ; {
		more = l.drain(&l.buffer, true)
		if l.stepped = l.disk.o.Clock(); !more || l.stepped >= until || len(l.long) > 0 || len(l.buffer) >= gatherBytes {
			break
		}
	}
	if len(l.long) == 0 {
		return l.drained(more)
	}
	goOn := func() bool {
		for _, k := range l.long {
			l.buffer = aof.AppendState(l.buffer, k.key, k.st)
		}
		l.long = nil
		return l.drained(more)
	}
	if l.disk.aside(func() {
		if goOn() {
			l.disk.background(l.step)
		}
	}) {
		return false
	}
	return goOn()
}

// drained passes the buffer on if it is full, or nothing more changed, and says whether step is to go on.
func (l *appendLog) drained(more bool) bool {
	if more && len(l.buffer) < gatherBytes {
		return true
	}
	if len(l.buffer) > 0 {
		l.pending.Add(int64(len(l.buffer)))
		l.full <- l.buffer // never blocks: full has room for both buffers
	} else {
		l.empty <- l.buffer
	}
	l.buffer = nil
	if !more {
		l.gathering.Store(false)
	}
	return more
}

// drain appends a few changes, and says whether there are more. Changes of policies go first, as keys may depend on them. With aside, those
// that take long are put into l.long instead, to be appended before drain is called again.
func (l *appendLog) drain(b *[]byte, aside bool) (more bool) {
	start := len(*b)
	more = l.disk.store.Drain(func(c memory.Change) {
		if c.Lost {
			l.lost.Store(true)
		}
		if aside && isLong(c.State) {
			l.long = append(l.long, keep(c.Key, c.State))
			return
		}
		*b = aof.AppendChange(*b, c)
	})
	var settings []byte
	if l.disk.store.DrainSettings(func(c policy.Change) { settings = l.disk.appendSettingChange(settings, c) }) {
		l.lost.Store(true)
	}
	*b = slices.Insert(*b, start, settings...)
	return more
}

// write writes full buffers, and tries each until it succeeds. After close has begun, each gets one last try.
func (l *appendLog) write() {
	defer l.disk.escaped("the append-only file")
	for b := range l.full {
		for last := false; ; last = l.ending() {
			err := l.append(b, !l.disk.unsynced.Load())
			l.note(err)
			if err == nil {
				break
			}
			if last {
				l.dropped = err
				break
			}
		}
		l.pending.Add(int64(-len(b)))
		if cap(b) > 4*gatherBytes { // a key with long logs has made it grow
			b = make([]byte, 0, gatherBytes)
		}
		l.empty <- b
		l.goOn()
	}
}

// ending waits for a second before the next try. It returns true when close has begun.
func (l *appendLog) ending() bool {
	select {
	case <-l.ended:
		return true
	case <-time.After(retryEvery):
		return false
	}
}

// close writes all changes and closes the file.
func (l *appendLog) close() error {
	close(l.ended)
	b := l.buffer
	close(l.full)
	l.writing.Wait()
	if l.refused != nil {
		l.note(l.tryAgain())
	}
	err := l.failing()
	for more := true; more && err == nil; {
		if more = l.drain(&b, false); !more || len(b) >= gatherBytes {
			err = l.append(b, !more)
			b = b[:0]
		}
	}
	if err == nil {
		err = l.dropped
	}
	if err != nil {
		err = fmt.Errorf("write the append-only file: %w", err)
	}
	return errors.Join(err, l.file.Close())
}

func (l *appendLog) fill(st *Status) {
	l.logFile.fill(st)
	st.AOF, st.AOFErr, st.AOFPending = true, l.failing(), l.pending.Load()
}
