package cli

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

// mostLines bounds the lines that wait for the reader of the log, in bytes: some 8,000 lines.
const mostLines = 1 << 20

// Lines passes lines on to a writer that may block, such as a pipe that nobody reads. A goroutine writes them, so Write never waits:
// what finds no room is dropped and counted, and the log tells how much that was once it is read again. Any goroutine may call it.
type Lines struct {
	to   io.Writer
	work sync.Cond
	log  *slog.Logger // on to itself: it tells how many were dropped; nil: nobody does

	mu      sync.Mutex
	waiting []byte
	untold  int64         // dropped since the log last told of that
	dropped int64         // in all
	written chan struct{} // closed when nothing waits; nil: nobody asks
}

// NewLines starts the goroutine, which never ends.
func NewLines(to io.Writer) *Lines {
	l := &Lines{to: to}
	l.work.L = &l.mu
	go l.run()
	return l
}

// Write takes whole lines. It returns no error.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting)+len(p) > mostLines && len(l.waiting) > 0 {
		l.drop(p)
	} else {
		l.waiting = append(l.waiting, p...)
		l.work.Signal()
	}
	return len(p), nil
}

func (l *Lines) drop(p []byte) {
	n := int64(bytes.Count(p, []byte{'\n'}))
	l.dropped += n
	l.untold += n
}

// Dropped is how many lines were dropped.
func (l *Lines) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Flush returns when all lines have been written, or when patience has passed.
func (l *Lines) Flush(patience time.Duration) {
	l.mu.Lock()
	if l.written == nil {
		l.written = make(chan struct{})
	}
	written := l.written
	l.work.Signal()
	l.mu.Unlock()
	select {
	case <-written:
	case <-time.After(patience):
	}
}

func (l *Lines) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for spare := []byte(nil); ; {
		for len(l.waiting) == 0 {
			if l.written != nil {
				close(l.written)
				l.written = nil
			}
			l.work.Wait()
		}
		lines, dropped := l.waiting, l.untold // those were dropped after these
		l.waiting, l.untold = spare[:0], 0
		log := l.log
		l.mu.Unlock()
		_, err := l.to.Write(lines)
		if err == nil && dropped > 0 && log != nil {
			log.Warn("lines of the log were dropped, because nobody read them", "lines", dropped)
		}
		l.mu.Lock()
		if err != nil { // the reader has gone
			l.untold += dropped
			l.drop(lines)
		}
		if spare = lines; cap(spare) > 64<<10 {
			spare = nil
		}
	}
}
