package persistence

import (
	"errors"
	"fmt"
	"slices"
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
	gatherBytes = 1 << 20                // that are gathered before they are written
	retryEvery  = time.Second
)

// appendLog extends the append-only file.
//
// With EverySecond and Never, decisions only mark their keys. Twice a second, or when more than 65,536 keys are marked, a round begins: a
// goroutine gathers the states of these keys in small steps, and writes them. While it cannot write, only marks accumulate, so the memory
// in use stays at one buffer.
//
// A round begins once all of the round before is on the disk. So a crash loses what has changed since a round began, and no more: up to
// 0.5 s, or as long as a round takes on a slow disk, and then as long as the next round takes. If rounds overlapped, a third one would
// count.
//
// With Always, Commit gathers and writes what was decided, and the replies wait for it.
type appendLog struct {
	disk *Disk

	logFile
	rounds
	writeErr atomic.Pointer[error] // of the last write; nil: it succeeded
	active   atomic.Bool           // Start has been called

	commits commits
	retry   every
}

// rounds are how changes get into the file with EverySecond and Never.
type rounds struct {
	gather  every
	writing atomic.Bool   // a round is under way
	pending atomic.Int64  // bytes that the round writes, or that the disk has refused
	stepped int64         // when the last step ended, by Options.Clock; only step uses it
	buffer  []byte        // what step has gathered
	long    []copiedState // to be appended to it
}

func newAppendLog(d *Disk) *appendLog {
	l := &appendLog{disk: d, retry: every{period: retryEvery}, rounds: rounds{gather: every{period: gatherEvery}},
		logFile: logFile{clock: d.o.Clock, wallNS: d.wallNS}}
	l.commits.writing = make(chan struct{}, 1)
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
	if d.o.Fsync != Never { // the process that has written the end of the file may have been killed before it was synced
		l.loose = true
		err := l.sync()
		if l.loose = err != nil; l.loose {
			d.log.Warn("the append-only file cannot be synced, so it will be written anew", "file", d.paths.AppendOnly, "error", err)
		}
	}
	l.mu.Unlock()
	if d.o.Fsync == Always {
		_ = l.commit() // policies that flags have set; after an error tick tries again
	}
	l.active.Store(true)
	return nil
}

// use makes the log extend this file, of this size and this checksum of what follows its last stamp. The log is locked.
//
// With EverySecond, the kernel forgets the file as it grows. With Always that would not pay, as each write is small. With Never, nothing is
// synced.
func (l *appendLog) use(f dir.File, size int64, crc uint64) {
	if l.disk.o.Fsync != Always && !l.disk.unsynced.Load() {
		f = &dir.Paced{File: f, Size: size, Forgotten: size}
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

// failing returns why decisions do not reach the disk, or not the file that the next start reads. nil: they do.
func (l *appendLog) failing() error {
	if a := l.disk.misplaced.Load(); a != nil {
		return a.why
	}
	if err := l.writeErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *appendLog) tick(nowNS int64) {
	always, failing := l.disk.o.Fsync == Always, l.writeErr.Load() != nil
	switch {
	case l.writing.Load(), failing && !l.retry.due(nowNS), !failing && always:
	case always:
		if l.recover() { // then write the changes of rounds that had begun before the disk refused
			l.disk.Begin()
			_ = l.disk.Commit()
		}
	case failing || l.gather.due(nowNS) || l.disk.store.Changed() > gatherSoon:
		l.writing.Store(true)
		if !l.disk.offload(l.round) {
			l.writing.Store(false)
		}
	}
}

// recover writes what the disk has refused, and reports whether writes go on.
func (l *appendLog) recover() bool {
	err := l.tryAgain()
	l.note(err)
	return err == nil
}

// round gathers what has changed in steps, and writes it.
func (l *appendLog) round() {
	defer l.writing.Store(false)
	if l.writeErr.Load() != nil && !l.recover() {
		return
	}
	for more := true; more && !l.disk.stopping.Load(); {
		l.disk.inSteps(func() bool { more = l.step(); return more && len(l.long) == 0 && len(l.buffer) < gatherBytes })
		for _, k := range l.long {
			l.buffer = aof.AppendState(l.buffer, k.key, k.st)
		}
		l.long = nil
		l.pending.Store(int64(len(l.buffer)))
		if l.writePiece(&l.buffer) != nil {
			return
		}
		l.pending.Store(0)
	}
}

// mostStep is the longest that a step gathers.
const mostStep = time.Millisecond

// step gathers changes, and reports whether there are more. It takes as long as its loop has served callers since the last step, mostStep
// at most. With 64 changes a step, a loop that decided on 320 calls in each round fell behind: changes were written up to 6.7 s later.
func (l *appendLog) step() (more bool) {
	began := l.disk.o.Clock()
	for until := began + min(began-l.stepped, int64(mostStep)); ; {
		more = l.drain(&l.buffer, true)
		if l.stepped = l.disk.o.Clock(); !more || l.stepped >= until || len(l.long) > 0 || len(l.buffer) >= gatherBytes {
			return more
		}
	}
}

// drain appends a few changes, and reports whether there are more. Changes of policies go first, as keys may depend on them. With copyLong,
// drain puts those that take long into l.long instead: append them before the next call.
func (l *appendLog) drain(b *[]byte, copyLong bool) (more bool) {
	start := len(*b)
	more = l.disk.store.Drain(func(c memory.Change) {
		if c.Lost {
			l.lost.Store(true)
		}
		if copyLong && isLong(c.State) {
			l.long = append(l.long, copyState(c.Key, c.State))
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

// close writes all changes and closes the file.
func (l *appendLog) close() error {
	if l.refused != nil {
		l.recover()
	}
	err := l.failing()
	var b []byte
	for more := true; more && err == nil; {
		more = l.gatherPiece(&b)
		err = l.append(b, !more)
		b = b[:0]
	}
	if err != nil {
		err = fmt.Errorf("write the append-only file: %w", err)
	}
	return errors.Join(err, l.file.Close())
}

func (l *appendLog) fill(st *Status) {
	st.AOF, st.AOFErr, st.AOFPending = true, l.failing(), l.pending.Load()
	st.AOFSize, st.AOFBaseSize, st.AOFFailures = l.size.Load(), l.baseSize.Load(), l.failed.Load()
	st.AOFSyncs, st.AOFSyncNS = l.syncs.Load(), l.syncNS.Load()
}
