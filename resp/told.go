package resp

import (
	"context"
	"net"
	"sync"
)

// mostTold is how many lines of one kind the log gets a second.
const mostTold = 10

// told bounds the lines that tell one by one which clients are slow or refused, at loglevel verbose and debug. A flood of refusals
// leaves its first lines in each second, and how many more there were.
type told struct {
	mu    sync.Mutex
	kinds map[string]*toldKind // by the line's text, which is one of this program's
}

type toldKind struct {
	sinceNS        int64 // when its second began
	lines, leftOut int64
}

// Tell logs which client is slow or refused, and why: its address, its user, its command's name. about has neither keys, nor values, nor
// what may be a secret. Any goroutine may call it.
func (srv *Server) Tell(text string, about ...any) {
	if !srv.tells() {
		return
	}
	nowNS := srv.clock()
	srv.told.mu.Lock()
	defer srv.told.mu.Unlock()
	k := srv.told.kinds[text]
	if k == nil {
		if srv.told.kinds == nil {
			srv.told.kinds = map[string]*toldKind{}
		}
		k = &toldKind{sinceNS: nowNS}
		srv.told.kinds[text] = k
	}
	srv.endSecond(text, k, nowNS)
	if k.lines++; k.lines > mostTold {
		k.leftOut++
		return
	}
	srv.log.Log(context.Background(), LevelVerbose, text, about...)
}

// tells says that somebody wants the lines of Tell.
func (srv *Server) tells() bool { return srv.log.Enabled(context.Background(), LevelVerbose) }

// tellLeftOut logs how many lines were left out in seconds that are over.
func (srv *Server) tellLeftOut() {
	nowNS := srv.clock()
	srv.told.mu.Lock()
	defer srv.told.mu.Unlock()
	for text, k := range srv.told.kinds {
		srv.endSecond(text, k, nowNS)
	}
}

func (srv *Server) endSecond(text string, k *toldKind, nowNS int64) {
	if nowNS-k.sinceNS < seldomNS {
		return
	}
	if k.leftOut > 0 {
		srv.log.Log(context.Background(), LevelVerbose, text, "left_out", k.leftOut)
	}
	*k = toldKind{sinceNS: nowNS}
}

// Texts of Tell.
const (
	TellConnection = "a connection is refused"
	TellRequest    = "an HTTP request is refused"
	tellCommand    = "a command is refused"
	tellPassword   = "wrong password"
	tellSlow       = "slow command"
)

// tell is Tell about the session's client.
func (s *Session) tell(text string, about ...any) {
	if !s.srv.tells() { // as all commands may count as slow
		return
	}
	s.srv.Tell(text, append([]any{"client", s.client.addr, "id", s.client.id, "user", s.client.user.Load().Name()}, about...)...)
}

// tellRejected tells of a connection that is not served.
func (srv *Server) tellRejected(remote net.Addr, reason string) {
	srv.Tell(TellConnection, "client", addrText(remote), "reason", reason)
}
