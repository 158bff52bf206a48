package persistence

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/policy"
)

const (
	gatherEvery = 900 * time.Millisecond // with ticks of 100 ms, no change is older than a second when it is written
	gatherSoon  = 1 << 16                // changes that are not waited with
	gatherBytes = 1 << 20                // in a buffer, of which there are two
	retryEvery  = time.Second
)

// appendLog extends the append-only file.
//
// With EverySecond and Never, decisions only mark their keys; once a second, or when very many have changed, what they
// have become is gathered in small steps, and written by a goroutine of its own. If that cannot, marks are all that
// gathers, so that it takes no more memory than two buffers.
//
// With Always, Commit gathers and writes what was decided, and the replies wait for it.
type appendLog struct {
	disk *Disk

	mu       sync.Mutex // the file
	file     File
	size     int64  // of whole commands in it
	baseSize int64  // when it was last rewritten, or loaded
	crc      uint64 // of what follows the last stamp
	torn     bool   // there is something behind size, which must go before more is written
	failed   int64  // writes that have failed
	resized  int64  // times that somebody else has changed its size
	refused  []byte // what a commit could not write. It is written before anything else is

	// The same for INFO, which must not wait for the file.
	shown struct{ size, baseSize, failed atomic.Int64 }

	writeErr atomic.Pointer[error] // of the last write; nil: it went well

	gather    every
	gathering atomic.Bool
	buffer    []byte      // being filled; only the gathering's
	empty     chan []byte // two of them
	full      chan []byte
	pending   atomic.Int64 // bytes in full, or being written
	writing   sync.WaitGroup
	ended     chan struct{}
	active    atomic.Bool // Start has been called
	lost      atomic.Bool // changes are not in the file and will not be told again: only a rewrite makes it good
	dropped   error       // why a buffer was given up at the end; read when the writing has ended

	commits commits
	retry   every
}

func newAppendLog(d *Disk) *appendLog {
	l := &appendLog{disk: d, gather: every{period: gatherEvery}, retry: every{period: retryEvery}, ended: make(chan struct{})}
	l.empty, l.full = make(chan []byte, 2), make(chan []byte, 2)
	l.empty <- make([]byte, 0, 1<<10)
	l.empty <- make([]byte, 0, 1<<10)
	l.commits.L = &l.commits.Mutex
	l.commits.failed = make(map[int64]error)
	return l
}

// open opens the file, and writes one first where what was loaded cannot be extended.
func (l *appendLog) open() error {
	d := l.disk
	if d.rewriteAtStart {
		if err := d.rewriteWhole(true); err != nil {
			return fmt.Errorf("write the append-only file: %w", err)
		}
	}
	f, err := d.files.Append(d.aofPath())
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.mu.Lock()
	l.file, l.size, l.baseSize, l.crc = d.appending(f, info.Size()), info.Size(), info.Size(), d.tailCRC
	l.show()
	l.mu.Unlock()
	if d.o.Fsync == Always {
		_, _ = l.commit() // policies that flags have set; what is refused is tried again
	}
	l.writing.Go(l.write)
	l.active.Store(true)
	return nil
}

// append writes whole commands and a stamp, and has them on the disk if sync says so. If it cannot, none of them is in the
// file.
func (l *appendLog) append(b []byte, sync bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendLocked(b, sync)
}

// roomToGoOn is what the disk must take before writes go on. The last block of the file takes a few bytes even when the disk is
// full. A stamp alone went there each second, and the log told of an end of the trouble that lasted for one command.
var roomToGoOn = make([]byte, 64<<10)

// tryAgain writes what the disk has refused, and says whether it takes writes again.
func (l *appendLog) tryAgain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		if err := l.cut(); err != nil {
			return err
		}
	}
	l.torn = true
	if _, err := l.file.Write(roomToGoOn); err != nil {
		l.torn = l.cut() != nil
		return err
	}
	if err := l.appendLocked(l.refused, true); err != nil { // which cuts first
		return err
	}
	l.refused = nil
	return nil
}

// show tells what fill has. The log is locked.
func (l *appendLog) show() {
	l.shown.size.Store(l.size)
	l.shown.baseSize.Store(l.baseSize)
	l.shown.failed.Store(l.failed)
}

func (l *appendLog) appendLocked(b []byte, sync bool) (err error) {
	defer l.show()
	if l.torn {
		if err := l.cut(); err != nil {
			l.failed++
			return err
		}
		l.torn = false
	}
	b = appendStamp(b, l.disk.wallNS(), jonesUpdate(l.crc, b))
	_, err = l.file.Write(b)
	if err == nil && sync {
		err = l.file.Sync()
	}
	if err != nil {
		l.failed++
		l.torn = l.cut() != nil
		return err
	}
	l.size += int64(len(b))
	l.crc = 0
	return nil
}

// note keeps how the last write went, and tells the log when that changes.
func (l *appendLog) note(err error) {
	was := l.writeErr.Load()
	switch {
	case err == nil && was == nil:
		return
	case err == nil:
		l.writeErr.Store(nil)
		l.disk.log.Info("the append-only file can be written again", "file", l.disk.aofPath())
	default:
		l.writeErr.Store(&err)
		if was == nil {
			l.disk.log.Error("the append-only file cannot be written", "file", l.disk.aofPath(), "error", err)
		}
	}
	l.disk.tellRefusal()
}

// failing is why what is decided does not get to the disk, or not to where the next start looks for it.
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
			if l.note(err); err == nil { // now what rounds have changed that had begun when the disk refused the first
				l.disk.Begin()
				_ = l.disk.Commit()
			}
		}
		return
	}
	if !l.gathering.Load() && (l.gather.due(nowNS) || l.disk.store.Changed() > gatherSoon) && l.gathering.CompareAndSwap(false, true) {
		l.disk.background(l.step)
	}
}

// step gathers a few changes.
func (l *appendLog) step() (more bool) {
	if l.buffer == nil {
		select {
		case b := <-l.empty:
			l.buffer = b[:0]
		default: // the disk is behind; marks wait
			l.gathering.Store(false)
			return false
		}
	}
	more = l.drain(&l.buffer)
	if more && len(l.buffer) < gatherBytes {
		return true
	}
	if len(l.buffer) > 0 {
		l.pending.Add(int64(len(l.buffer)))
		l.full <- l.buffer // there is room: there are but two
	} else {
		l.empty <- l.buffer
	}
	l.buffer = nil
	if !more {
		l.gathering.Store(false)
	}
	return more
}

// drain appends a few changes, and says whether there are more. Those of policies go before those of keys, which may be under
// them.
func (l *appendLog) drain(b *[]byte) (more bool) {
	start := len(*b)
	more = l.disk.store.Drain(func(c store.Change) {
		if c.Lost {
			l.lost.Store(true)
		}
		*b = appendChange(*b, c)
	})
	var settings []byte
	if l.disk.store.DrainSettings(func(c policy.Change) { settings = l.disk.appendSettingChange(settings, c) }) {
		l.lost.Store(true)
	}
	*b = slices.Insert(*b, start, settings...)
	return more
}

// write writes the buffers that are full. At the end each is tried once more.
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
		if cap(b) > 4*gatherBytes { // a key with logs has grown it
			b = make([]byte, 0, gatherBytes)
		}
		l.empty <- b
	}
}

// ending waits a moment before the next try, or says that there will be none.
func (l *appendLog) ending() bool {
	select {
	case <-l.ended:
		return true
	case <-time.After(retryEvery):
		return false
	}
}

// close writes what there is and closes the file.
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
		if more = l.drain(&b); !more || len(b) >= gatherBytes {
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
	st.AOF, st.AOFSize, st.AOFBaseSize, st.AOFErr = true, l.shown.size.Load(), l.shown.baseSize.Load(), l.failing()
	st.AOFPending, st.AOFFailures = l.pending.Load(), l.shown.failed.Load()
}
