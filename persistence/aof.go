package persistence

import (
	"errors"
	"fmt"
	"math"
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
	firstAtOnce = 64 << 10               // bytes of keys that a round may tell at one instant at first: see gather
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
//
// Each round, and each Commit, is one unit of the file: all of it counts or none. It ends with what the keys hold at one instant between
// two calls, transactions or scripts, so a crash leaves each of them whole.
type appendLog struct {
	disk *Disk

	logFile
	unit
	writing  atomic.Bool           // a round is under way
	rounds   every                 // when they begin
	writeErr atomic.Pointer[error] // of the last write; nil: it succeeded
	active   atomic.Bool           // Start has been called

	commits commits
	retry   every
}

// unit is what the file gets as one. Whoever has the turn uses it.
type unit struct {
	turn    chan struct{} // holds one, who gathers and writes
	begun   bool          // its beginning was written, or refused
	inFile  bool          // the file has its beginning, and not yet its end
	buffer  []byte        // what was gathered and not written
	long    []copiedState // to be appended to it
	stepped int64         // when the last step ended, by Options.Clock
	pending atomic.Int64  // bytes that are being written, or that the disk has refused
}

func newAppendLog(d *Disk) *appendLog {
	return &appendLog{disk: d, retry: every{period: retryEvery}, rounds: every{period: gatherEvery},
		logFile: logFile{clock: d.o.Clock, wallNS: d.wallNS}, unit: unit{turn: make(chan struct{}, 1)}}
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
		_ = l.round() // policies that flags have set; after an error tick tries again
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
	case failing || l.rounds.due(nowNS) || l.disk.store.Changed() > gatherSoon:
		l.writing.Store(true)
		if !l.disk.offload(l.background) {
			l.writing.Store(false)
		}
	}
}

// recover writes what the disk has refused, and reports whether writes go on.
func (l *appendLog) recover() bool {
	return l.inTurn(func() error {
		err := l.tryAgain()
		if l.note(err); err == nil {
			l.written()
		}
		return err
	}) == nil
}

// background is a round in a goroutine of its own.
func (l *appendLog) background() {
	defer l.writing.Store(false)
	if l.writeErr.Load() == nil || l.recover() {
		_ = l.round()
	}
}

// round writes what has changed.
func (l *appendLog) round() error { return l.inTurn(func() error { return l.flush(l.write) }) }

// inTurn calls do while nobody else writes.
func (l *appendLog) inTurn(do func() error) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return do()
}

// flush passes all that has changed to write, as one unit. The caller has the turn.
func (l *appendLog) flush(write func(piece []byte) error) (err error) {
	if l.disk.o.Fsync == Always {
		l.commits.between(func() { err = l.gather(directly, atAnyTime, write) })
	} else {
		err = l.gather(l.disk.inSteps, l.disk.between, write)
	}
	if err == nil {
		err = write(l.piece(true))
	}
	return err
}

// gather gathers all that has changed up to one instant between two calls, and writes it piece by piece. The rest, and the end of the
// unit, are left in piece. in runs steps until they return false, and reports whether it did. between is as in Disk.Start.
//
// Callers go on meanwhile. What they change is gathered again: so a pass over all that has changed leaves less for the next, and the last
// of it is gathered at one instant. That may be 64 KB of keys, some 700, in 0.1 ms, and after each pass twice as much. A pass that is not
// half of the one before is the last one: callers change more than the disk takes meanwhile. Then a crash may leave a part of a call. To
// go on would take memory for all keys, or hold callers up.
func (l *appendLog) gather(in func(step func() (more bool)) bool, between func(do func()) bool, write func(piece []byte) error) error {
	last, most := math.MaxInt, int64(firstAtOnce) // last: bytes of the pass before
	if l.disk.o.Fsync == Always {                 // nobody decides meanwhile
		most = gatherBytes
	}
	for ; ; most *= 2 {
		whole, more := false, true
		for ran := false; !ran; {
			did := in(func() bool {
				ran = between(func() {
					whole = l.drain(func(fn func(memory.Change)) bool { return l.disk.store.DrainAtOnce(most, fn) })
				})
				return false
			})
			if l.appendLong(); !did {
				return ErrStopping
			}
			if !ran {
				time.Sleep(busyWait)
			}
		}
		if whole {
			return nil
		}
		told := -len(l.buffer)
		for more {
			did := in(func() bool { more = l.step(); return more && len(l.long) == 0 && len(l.buffer) < gatherBytes })
			if l.appendLong(); !did {
				return ErrStopping
			}
			if len(l.buffer) < gatherBytes {
				continue
			}
			piece := l.piece(false)
			told += len(piece)
			if err := write(piece); err != nil {
				return err
			}
		}
		if told += len(l.buffer); told > last/2 {
			return nil
		}
		last = told
	}
}

// busyWait is how long a round waits for a script that takes long, before it asks again.
const busyWait = 10 * time.Millisecond

// directly runs steps in the caller's goroutine, while nobody decides.
func directly(step func() (more bool)) bool {
	for step() {
	}
	return true
}

// mostStep is the longest that a step gathers.
const mostStep = time.Millisecond

// step gathers changes, and reports whether there are more. It takes as long as its loop has served callers since the last step, mostStep
// at most. With 64 changes a step, a loop that decided on 320 calls in each round fell behind: changes were written up to 6.7 s later.
func (l *appendLog) step() (more bool) {
	began := l.disk.o.Clock()
	for until := began + min(began-l.stepped, int64(mostStep)); ; {
		more = l.drain(l.disk.store.Drain)
		if l.stepped = l.disk.o.Clock(); !more || l.stepped >= until || len(l.long) > 0 || len(l.buffer) >= gatherBytes {
			return more
		}
	}
}

// drain appends changes, and returns what from does. Changes of policies go first, as keys may depend on them. Those that take long go into
// l.long instead: append them before the next call.
func (l *appendLog) drain(from func(fn func(memory.Change)) bool) bool {
	start := len(l.buffer)
	told := from(func(c memory.Change) {
		if c.Lost {
			l.lost.Store(true)
		}
		if isLong(c.State) {
			l.long = append(l.long, copyState(c.Key, c.State))
			return
		}
		l.buffer = aof.AppendChange(l.buffer, c)
	})
	var settings []byte
	if l.disk.store.DrainSettings(func(c policy.Change) { settings = l.disk.appendSettingChange(settings, c) }) {
		l.lost.Store(true)
	}
	l.buffer = slices.Insert(l.buffer, start, settings...)
	return told
}

func (l *appendLog) appendLong() {
	for _, k := range l.long {
		l.buffer = aof.AppendState(l.buffer, k.key, k.st)
	}
	l.long = nil
}

// piece is what was gathered of a unit, and with last its end. A unit of one command has neither beginning nor end.
func (l *appendLog) piece(last bool) []byte {
	if len(l.buffer) == 0 && !(l.begun && last) {
		return nil
	}
	if !l.begun && !(last && aof.IsOne(l.buffer)) {
		l.buffer, l.begun = slices.Insert(l.buffer, 0, []byte(aof.Multi)...), true
	}
	if last && l.begun {
		l.buffer, l.begun = append(l.buffer, aof.Exec...), false
	}
	piece := l.buffer
	if l.buffer = l.buffer[:0]; cap(l.buffer) > 4*gatherBytes { // a key with long logs has made it grow
		l.buffer = nil
	}
	return piece
}

// write writes a piece. After an error it keeps the bytes for tryAgain.
func (l *appendLog) write(piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	l.pending.Store(int64(len(piece)))
	err := l.append(piece, !l.disk.unsynced.Load())
	if err != nil {
		l.refused, l.buffer = piece, nil
		l.note(err)
		return err
	}
	l.written()
	return nil
}

// written notes that the file has all that was passed to write.
func (l *appendLog) written() {
	l.inFile = l.begun
	l.pending.Store(0)
}

// close writes all changes and closes the file.
func (l *appendLog) close() error {
	if l.refused != nil {
		l.recover()
	}
	err := l.failing()
	if err == nil {
		err = l.gather(directly, atAnyTime, l.write)
	}
	if err == nil {
		err = l.write(l.piece(true))
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
