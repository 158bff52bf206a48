package resp

import (
	"os"
	"time"
)

// AwaitStop returns when the server is to stop: a client has asked for SHUTDOWN, or a signal has come and --shutdown-delay
// seconds have passed since. Until then it serves as before. A second signal ends the delay; SHUTDOWN ABORT takes the first
// one back. A server that still loads serves nobody, so its signal is not delayed.
func (srv *Server) AwaitStop(signals <-chan os.Signal) {
	for {
		select {
		case <-srv.stop:
			return
		case sig := <-signals:
			delay := time.Duration(srv.cfg.shutdownDelay.Get()) * time.Second
			if srv.gate.has(gateLoading) || srv.delayed(delay, sig, signals) {
				return
			}
		}
	}
}

// delayed returns when the delay is over, and false when a client has aborted it.
func (srv *Server) delayed(delay time.Duration, sig os.Signal, signals <-chan os.Signal) bool {
	if delay == 0 {
		return true
	}
	srv.log.Info("stopping after the shutdown delay, serving until then", "signal", sig.String(), "delay", delay.String())
	select {
	case <-time.After(delay):
	case <-srv.stop:
	case sig = <-signals:
		srv.log.Info("a second signal ends the shutdown delay", "signal", sig.String())
	case srv.aborts <- struct{}{}:
		return false
	}
	return true
}

// abortShutdown reports whether there was a shutdown delay to end.
func (srv *Server) abortShutdown() bool {
	select {
	case <-srv.aborts:
		return true
	default:
		return false
	}
}
