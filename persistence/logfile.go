package persistence

import (
	"errors"
	"sync"
	"sync/atomic"

	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/persistence/source"
)

// logFile is the append-only file: whole commands get to its end, or nothing does.
type logFile struct {
	clock  func() int64 // Unix nanoseconds
	wallNS func() int64

	mu      sync.Mutex
	file    dir.File
	crc     uint64 // of what follows the last stamp
	torn    bool   // the file is longer than size; the rest must be cut off before more is written
	resized int64  // how often another process has changed the file's size
	refused []byte // what a commit could not write; tryAgain writes it before anything else
	loose   bool   // something in the file has not been synced

	// Some changes are not in the file, and the journal no longer holds them: only a rewrite repairs it.
	lost atomic.Bool

	// These change under mu. INFO reads them without mu, as it must not wait for the file.
	size     atomic.Int64 // bytes of whole commands in the file
	baseSize atomic.Int64 // size when the file was last rewritten, or loaded
	failed   atomic.Int64 // writes that have failed
	syncs    atomic.Int64
	syncNS   atomic.Int64
}

var errResized = errors.New("the append-only file was truncated, or something else was written to it")

// begin continues with another file, of this size and this checksum of what follows its last stamp. The log is locked.
func (l *logFile) begin(f dir.File, size int64, crc uint64) {
	l.file, l.crc, l.torn, l.resized, l.loose = f, crc, false, 0, false
	l.size.Store(size)
	l.baseSize.Store(size)
}

// append writes whole commands and a stamp, and syncs the file if sync is set. After an error none of them is in the file.
func (l *logFile) append(b []byte, sync bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendLocked(b, sync)
}

// roomToGoOn is what the disk must accept before writes continue. Even on a full disk the last block of the file takes a few bytes: a stamp
// alone fitted there each second, and the log reported a recovery that lasted for one command.
var roomToGoOn = make([]byte, 64<<10)

// tryAgain writes what the disk has refused. It returns nil if the disk accepts writes again.
func (l *logFile) tryAgain() error {
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

func (l *logFile) appendLocked(b []byte, sync bool) (err error) {
	if l.torn {
		if err := l.cut(); err != nil {
			l.failed.Add(1)
			return err
		}
		l.torn = false
	}
	b = aof.AppendStamp(b, l.wallNS(), source.Checksum(l.crc, b))
	_, err = l.file.Write(b)
	if err == nil && sync {
		err = l.sync()
	}
	if err != nil {
		l.failed.Add(1)
		l.torn = l.cut() != nil
		return err
	}
	l.size.Add(int64(len(b)))
	l.crc, l.loose = 0, !sync
	return nil
}

// sync forces the file to the disk. After an error Linux drops what could not be written. What was appended last is cut off then, and
// written again. What was there before and had not been synced is lost: after a loss of power there would be zeros in its place, and the
// next start would refuse the file.
func (l *logFile) sync() error {
	began := l.clock()
	err := l.file.Sync()
	l.syncs.Add(1)
	l.syncNS.Add(l.clock() - began)
	if err != nil && l.loose {
		l.lost.Store(true)
	}
	return err
}

// checkSize returns errResized if the size of the file is not what was written. Then the log continues from the new size. The log is
// locked.
func (l *logFile) checkSize() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if size, want := info.Size(), l.size.Load(); size < want || size > want && !l.torn {
		l.size.Store(size)
		l.torn = false
		l.resized++
		return errResized
	}
	return nil
}

// cut cuts the file off at size. If another process has made it shorter, cut fails: to make it longer would fill it with zeros.
func (l *logFile) cut() error {
	info, err := l.file.Stat()
	if err == nil && info.Size() < l.size.Load() {
		err = errResized
	}
	if err != nil {
		return err
	}
	return l.file.Truncate(l.size.Load())
}

// mark returns where later appends begin, and how often another process has changed the size of the file. A stamp ends the checksum there,
// so that a new file can hold a copy of the bytes that follow.
func (l *logFile) mark() (from, resized int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crc != 0 {
		err = l.appendLocked(nil, false)
	}
	return l.size.Load(), l.resized, err
}
