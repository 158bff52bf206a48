package resp

import (
	"context"
	"errors"
	"os"
	"time"

	"celld/persistence"
	"celld/resp/gate"
	"celld/resp/transport"
)

// AwaitStop returns when the server is to stop: a client has asked for SHUTDOWN, or a signal has come and --shutdown-delay
// seconds have passed since. Until then it serves as before. A second signal ends the delay; SHUTDOWN ABORT takes the first
// one back. A server that still loads serves nobody, so its signal is not delayed.
func (srv *Server) AwaitStop(signals <-chan os.Signal) {
	for {
		select {
		case <-srv.life.stop:
			return
		case sig := <-signals:
			delay := time.Duration(srv.sessions.Config.ShutdownDelay.Get()) * time.Second
			srv.life.leaving.Store(true)
			if srv.sessions.Gate.Has(gate.Loading) || srv.delayed(delay, sig, signals) {
				return
			}
			srv.life.leaving.Store(false)
		}
	}
}

// delayed returns when the delay is over, and false when a client has aborted it.
func (srv *Server) delayed(delay time.Duration, sig os.Signal, signals <-chan os.Signal) bool {
	if delay == 0 {
		return true
	}
	srv.sessions.Log.Info("stopping after the shutdown delay, serving until then", "signal", sig.String(), "delay", delay.String())
	select {
	case <-time.After(delay):
	case <-srv.life.stop:
	case sig = <-signals:
		srv.sessions.Log.Info("a second signal ends the shutdown delay", "signal", sig.String())
	case srv.life.aborts <- struct{}{}:
		return false
	}
	return true
}

// AbortShutdown ends the delay of a shutdown, and reports whether there was one.
func (srv *Server) AbortShutdown() bool {
	select {
	case <-srv.life.aborts:
		return true
	default:
		return false
	}
}

// What SHUTDOWN has said about a snapshot.
const (
	saveIfOn = iota
	saveAlways
	saveNever
)

// PrepareShutdown notes what is to be done at the end, and takes the snapshot that is asked for at once, so that its
// failure can be told. What changes after it is in the one at the end.
func (srv *Server) PrepareShutdown(save, nosave bool) (ok bool) {
	switch {
	case nosave, srv.sessions.Gate.Has(gate.Loading): // the file has more than has been read so far
		srv.life.saveAtExit.Store(saveNever)
		return true
	case save:
		srv.life.saveAtExit.Store(saveAlways)
	case !srv.sessions.Persist.SaveAtExit():
		return true
	}
	err := srv.sessions.Persist.Save()
	if err == nil || errors.Is(err, persistence.ErrSaving) {
		return true
	}
	srv.life.saveAtExit.Store(saveIfOn) // it does not end now
	return false
}

// Busy reports whether a script takes too long.
func (srv *Server) Busy() bool { return srv.sessions.Gate.Has(gate.Busy) }

// Shutdown stops the server at once, whatever --shutdown-delay says, and calls atEnd when all files are whole. It does not wait for that.
func (srv *Server) Shutdown(atEnd func()) {
	srv.life.mu.Lock()
	defer srv.life.mu.Unlock()
	srv.life.atEnd = append(srv.life.atEnd, atEnd)
	srv.life.stopOnce.Do(func() { close(srv.life.stop) })
}

// ended calls what Shutdown was given.
func (srv *Server) ended() {
	srv.life.mu.Lock()
	defer srv.life.mu.Unlock()
	for _, atEnd := range srv.life.atEnd {
		atEnd()
	}
}

// At shutdown, what may be on its way counts as arrived and answered when nothing was heard for quietNS. Peers that go on
// sending are answered for busyNS more.
const (
	quietNS = 50_000_000
	busyNS  = 1_000_000_000
)

// drain waits, once no new connections come, until what has arrived is answered and the answers are read, at most until the shutdown
// time-out ends. With an engine a tenth of the time is left for drainLimiter, as a peer may never read.
func (srv *Server) drain(t *transport.Transport, endsNS int64) {
	startNS := srv.sessions.Clock()
	if !srv.sessions.Port.InProcess() {
		endsNS -= (endsNS - startNS) / 10
	}
	for {
		leftNS := endsNS - srv.sessions.Clock()
		if leftNS <= 0 {
			return
		}
		owes := t.Owes(time.Duration(leftNS))
		nowNS, lastNS := srv.sessions.Clock(), startNS
		for _, c := range srv.sessions.Clients.All() {
			lastNS = max(lastNS, c.LastNS.Load())
		}
		if quiet := nowNS-lastNS > quietNS || nowNS-startNS > busyNS; quiet && !owes {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// drainLimiter is called before the sessions end. The function that it returns waits until what they held has been given back, at most
// until the shutdown time-out ends.
func (srv *Server) drainLimiter(endsNS int64) (wait func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(endsNS-srv.sessions.Clock()))
	drained := srv.sessions.Port.Drain(ctx)
	return func() {
		defer cancel()
		for !drained() || srv.sessions.Later.GivesBack() || !drained() { // what is given back is asked of the limiter again
			if ctx.Err() != nil {
				srv.sessions.Log.Warn("some leases of closed connections were not given back in time, and last until they end")
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// closeFiles writes the last changes, and a snapshot where one is wanted and the last is not as good.
func (srv *Server) closeFiles() error {
	p := srv.sessions.Persist
	save := srv.life.saveAtExit.Load() == saveAlways || srv.life.saveAtExit.Load() == saveIfOn && p.SaveAtExit()
	if st := p.Status(); st.ChangesSince == 0 && st.Saves > 0 && st.SaveErr == nil && p.SnapshotThere() {
		save = false
	}
	if srv.sessions.Gate.Has(gate.Loading) {
		return nil // stopped before all was read: the files are as they were
	}
	return p.Close(save)
}
