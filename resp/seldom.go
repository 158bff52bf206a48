package resp

import (
	"context"
	"log/slog"
	"sync"
)

// seldomNS is the least time between two lines of one kind.
const seldomNS = 1_000_000_000

// seldom limits the log lines that peers can cause: one a second of each kind, so that nobody can fill the disk. The last line of
// a kind is always logged, and each says how many were left out before it.
type seldom struct {
	mu    sync.Mutex
	kinds map[string]*seldomLine // by the line's text, which is one of this program's
}

type seldomLine struct {
	level    slog.Level
	text     string
	about    []any
	waits    bool // until its second is over
	leftOut  int64
	loggedNS int64
}

// warnSeldom logs a warning that peers can cause, once a second at most.
func (srv *Server) warnSeldom(text string, about ...any) {
	srv.logSeldom(text, slog.LevelWarn, text, about...)
}

func (srv *Server) logSeldom(kind string, level slog.Level, text string, about ...any) {
	nowNS := srv.clock()
	srv.seldom.mu.Lock()
	defer srv.seldom.mu.Unlock()
	l := srv.seldom.kinds[kind]
	if l == nil {
		if srv.seldom.kinds == nil {
			srv.seldom.kinds = map[string]*seldomLine{}
		}
		l = &seldomLine{level: level, text: text, loggedNS: nowNS - seldomNS}
		srv.seldom.kinds[kind] = l
	}
	if l.waits {
		l.leftOut++
	}
	l.about, l.waits = about, true
	srv.logWaiting(l, nowNS)
}

// logKept logs the lines whose second is over.
func (srv *Server) logKept() {
	nowNS := srv.clock()
	srv.seldom.mu.Lock()
	defer srv.seldom.mu.Unlock()
	for _, l := range srv.seldom.kinds {
		srv.logWaiting(l, nowNS)
	}
}

func (srv *Server) logWaiting(l *seldomLine, nowNS int64) {
	if !l.waits || nowNS-l.loggedNS < seldomNS {
		return
	}
	if l.leftOut > 0 {
		l.about = append(l.about, "left_out", l.leftOut)
	}
	srv.log.Log(context.Background(), l.level, l.text, l.about...)
	*l = seldomLine{level: l.level, text: l.text, loggedNS: nowNS}
}
