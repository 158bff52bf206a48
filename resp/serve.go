package resp

import (
	"context"
	"errors"
	"sync"
	"time"

	"celld/persistence"
	"celld/resp/gate"
	"celld/resp/metrics"
	"celld/resp/transport"
	"celld/resp/watch"
)

// Sessions make a session for each connection that a transport has.
func (srv *Server) Sessions() transport.Server { return srv.sessions.Carried() }

// Serve accepts connections and serves them until ctx ends or a client asks for SHUTDOWN. Then it accepts no more, answers what
// has arrived, and closes all connections within --shutdown-timeout. It first loads the files, and calls ready when they are
// loaded. Until then it answers commands that need them with -LOADING. The error says why it could not serve, or could not write
// the last changes.
func (srv *Server) Serve(ctx context.Context, listeners []transport.Listener, ready func()) error {
	t, err := transport.New(srv.Sessions(),
		transport.Options{Loops: int(srv.sessions.Config.IOThreads.Get()), Sync: srv.sessions.Synchronous})
	if err != nil {
		return err
	}
	return srv.serve(ctx, listeners, t, ready)
}

func (srv *Server) serve(ctx context.Context, listeners []transport.Listener, t *transport.Transport, ready func()) error {
	cronCtx, stopCron := context.WithCancel(context.Background())
	acceptCtx, stopAccepting := context.WithCancel(context.Background())
	defer stopAccepting()
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var cron, acceptors sync.WaitGroup
	srv.carries.Store(t)
	var loadErr error
	srv.sessions.Gate.Set(gate.Loading, srv.sessions.Persist.On())
	cron.Go(func() {
		if loadErr = srv.loadAll(t.Background); loadErr != nil {
			if errors.Is(loadErr, persistence.ErrStopping) {
				loadErr = nil
			}
			giveUp()
			return
		}
		ready()
		srv.files.Run(cronCtx)
		srv.cron(cronCtx, t)
	})
	srv.sockets.WarnOfCertificate()
	for _, ln := range listeners {
		acceptors.Go(func() { t.Accept(acceptCtx, ln) })
	}
	select {
	case <-ctx.Done():
	case <-srv.life.stop:
	}
	stopAccepting()
	for _, ln := range listeners {
		transport.StopAccepting(ln.Listener)
	}
	acceptors.Wait()
	for _, ln := range listeners {
		ln.Close()
	}
	srv.sessions.RefuseWaiting()
	endsNS := srv.sessions.Clock() + srv.sessions.Config.ShutdownTimeout.Get()*1e9
	others := srv.stopOthers()
	srv.drain(t, endsNS)
	others()
	srv.sessions.EndsNS.Store(endsNS) // one that has just begun may come to its end: half of a short script would stay
	srv.sessions.Ending.Store(true)
	stopCron()
	srv.sessions.Persist.Stop()
	cron.Wait()
	drained := srv.drainLimiter(endsNS)
	t.Stop()
	srv.sessions.Later.Wait()
	drained()
	srv.sessions.Execution.Lock() // a reload changes the store under it, and the next one sees that the server ends
	defer srv.sessions.Execution.Unlock()
	defer srv.ended()
	if loadErr != nil {
		return loadErr
	}
	return srv.closeFiles()
}

// OnMetrics is told of metrics beside the server's own. Call it before Serve.
func (srv *Server) OnMetrics(declare func(*metrics.List)) { srv.others = append(srv.others, declare) }

// Watch makes a file of a wing known, which is read again when it changes. ReadNow reads one that nobody has read yet. Call both before
// Serve.
func (srv *Server) Watch(f *watch.File)   { srv.files.Add(f) }
func (srv *Server) ReadNow(f *watch.File) { srv.files.Read(f) }

// OnStop is told what else to stop. The server calls stop when it accepts no more and answers what has arrived. stop returns when it makes
// no more calls, and should before ctx ends, which is after --shutdown-timeout. Call OnStop before Serve.
func (srv *Server) OnStop(stop func(ctx context.Context)) {
	srv.life.onStop = append(srv.life.onStop, stop)
}

// stopOthers begins what OnStop was told. The function that it returns waits for the end of that.
func (srv *Server) stopOthers() (wait func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(srv.sessions.Config.ShutdownTimeout.Get())*time.Second)
	var running sync.WaitGroup
	for _, stop := range srv.life.onStop {
		running.Go(func() { stop(ctx) })
	}
	return func() {
		running.Wait()
		cancel()
	}
}

// Listen opens the sockets: see listen.Sockets. From now on, calls are refused until Serve has read the files: others may let some in
// before Serve does.
func (srv *Server) Listen() ([]transport.Listener, error) {
	srv.sessions.Gate.Set(gate.Loading, srv.sessions.Persist.On())
	return srv.sockets.Listen()
}

// Reload reads files again that have changed, for somebody who says that they are whole.
func (srv *Server) Reload() { srv.files.Reload() }
