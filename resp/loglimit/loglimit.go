// Package loglimit bounds the lines of a log that peers can cause, so that nobody can fill the disk.
//
//	log := loglimit.New(slog.Default(), clock)
//	log.WarnLimited("a client does not read", "client", addr) // one line of this text a second
//	log.Flush()                                             // each second: the last of the lines beyond, and how many were left out
//
// golang.org/x/time/rate finds the lines that are too many. It does not keep the last one, which shows that the trouble goes on, and how
// often it came.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
)

// Verbose is between slog's debug and info, as redis.conf's verbose is between debug and notice. Lines that a hostile peer
// could write without end have this level.
const Verbose = slog.LevelDebug + 2

// secondNS is the second in which lines of one kind are counted.
const secondNS = 1_000_000_000

// Logger is a slog.Logger some of whose lines are bounded: so many a second of each kind. Of more, the last one is logged when the second
// is over, and says how many were left out before it. Any goroutine may use it.
type Logger struct {
	*slog.Logger
	now func() int64

	mu    sync.Mutex
	kinds map[string]*kind // mostly by the line's text, which is one of this program's
}

type kind struct {
	level   slog.Level
	text    string
	sinceNS int64 // when its second began
	lines   int   // that were logged in it
	about   []any // of the last line beyond
	waits   bool  // that line
	leftOut int64
}

// New returns a Logger whose seconds go by now, in nanoseconds.
func New(log *slog.Logger, now func() int64) *Logger {
	return &Logger{Logger: log, now: now, kinds: map[string]*kind{}}
}

// WarnLimited logs a warning once a second at most.
func (l *Logger) WarnLimited(text string, about ...any) {
	l.Bounded(1, text, slog.LevelWarn, text, about...)
}

// Bounded logs most lines of a kind a second.
func (l *Logger) Bounded(most int, of string, level slog.Level, text string, about ...any) {
	nowNS := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[of]
	if k == nil {
		k = &kind{level: level, text: text, sinceNS: nowNS}
		l.kinds[of] = k
	}
	if !k.waits && nowNS-k.sinceNS >= secondNS {
		k.sinceNS, k.lines = nowNS, 0
	}
	if k.lines < most {
		k.lines++
		l.Log(context.Background(), level, text, about...)
		return
	}
	if k.waits {
		k.leftOut++
	}
	k.about, k.waits = about, true
	l.logWaiting(k, nowNS)
}

// Flush logs the lines whose second is over.
func (l *Logger) Flush() {
	nowNS := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.kinds {
		l.logWaiting(k, nowNS)
	}
}

// logWaiting logs a line whose second is over, as the first of the next.
func (l *Logger) logWaiting(k *kind, nowNS int64) {
	if !k.waits || nowNS-k.sinceNS < secondNS {
		return
	}
	if k.leftOut > 0 {
		k.about = append(k.about, "left_out", k.leftOut)
	}
	l.Log(context.Background(), k.level, k.text, k.about...)
	*k = kind{level: k.level, text: k.text, sinceNS: nowNS, lines: 1}
}
