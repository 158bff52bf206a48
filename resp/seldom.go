package resp

import (
	"context"
	"log/slog"
	"sync"
)

// seldomNS is the second in which lines of one kind are counted.
const seldomNS = 1_000_000_000

// seldom limits the log lines that peers can cause: so many a second of each kind, so that nobody can fill the disk. Of more, the last
// one is logged when the second is over, and says how many were left out before it.
type seldom struct {
	mu    sync.Mutex
	kinds map[string]*seldomKind // mostly by the line's text, which is one of this program's
}

type seldomKind struct {
	level   slog.Level
	text    string
	sinceNS int64 // when its second began
	lines   int   // that were logged in it
	about   []any // of the last line beyond
	waits   bool  // that line
	leftOut int64
}

// warnSeldom logs a warning that peers can cause, once a second at most.
func (srv *Server) warnSeldom(text string, about ...any) {
	srv.logSeldom(text, slog.LevelWarn, text, about...)
}

func (srv *Server) logSeldom(kind string, level slog.Level, text string, about ...any) {
	srv.logBounded(1, kind, level, text, about...)
}

// logBounded logs most lines of a kind a second.
func (srv *Server) logBounded(most int, kind string, level slog.Level, text string, about ...any) {
	nowNS := srv.clock()
	srv.seldom.mu.Lock()
	defer srv.seldom.mu.Unlock()
	k := srv.seldom.kinds[kind]
	if k == nil {
		if srv.seldom.kinds == nil {
			srv.seldom.kinds = map[string]*seldomKind{}
		}
		k = &seldomKind{level: level, text: text, sinceNS: nowNS}
		srv.seldom.kinds[kind] = k
	}
	if !k.waits && nowNS-k.sinceNS >= seldomNS {
		k.sinceNS, k.lines = nowNS, 0
	}
	if k.lines < most {
		k.lines++
		srv.log.Log(context.Background(), level, text, about...)
		return
	}
	if k.waits {
		k.leftOut++
	}
	k.about, k.waits = about, true
	srv.logWaiting(k, nowNS)
}

// logKept logs the lines whose second is over.
func (srv *Server) logKept() {
	nowNS := srv.clock()
	srv.seldom.mu.Lock()
	defer srv.seldom.mu.Unlock()
	for _, k := range srv.seldom.kinds {
		srv.logWaiting(k, nowNS)
	}
}

// logWaiting logs a line whose second is over, as the first of the next.
func (srv *Server) logWaiting(k *seldomKind, nowNS int64) {
	if !k.waits || nowNS-k.sinceNS < seldomNS {
		return
	}
	if k.leftOut > 0 {
		k.about = append(k.about, "left_out", k.leftOut)
	}
	srv.log.Log(context.Background(), k.level, k.text, k.about...)
	*k = seldomKind{level: k.level, text: k.text, sinceNS: nowNS, lines: 1}
}
