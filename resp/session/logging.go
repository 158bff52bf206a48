package session

import (
	"context"
	"net"

	"celld/resp/client"
	"celld/resp/loglimit"
)

// mostLogged is how many lines of one kind the log gets a second.
const mostLogged = 10

// LogVerbose logs, at loglevel verbose and debug, which client is slow or refused, and why: its address, its user, its command's name.
// about has neither keys, nor values, nor what may be a secret. A flood of refusals leaves its first lines in each second. Any goroutine
// may call it.
func (srv *Service) LogVerbose(text string, about ...any) {
	if srv.logsVerbose() {
		srv.Log.Bounded(mostLogged, text, loglimit.Verbose, text, about...)
	}
}

// logsVerbose reports whether the log shows the lines of LogVerbose.
func (srv *Service) logsVerbose() bool {
	return srv.Log.Enabled(context.Background(), loglimit.Verbose)
}

// Texts of LogVerbose.
const (
	RefusedConnection = "a connection is refused"
	RefusedRequest    = "an HTTP request is refused"
	refusedCommand    = "a command is refused"
	wrongPassword     = "wrong password"
	slowCommand       = "slow command"
)

// logOf is LogVerbose about a client.
func (srv *Service) logOf(c *client.Client, text string, about ...any) {
	if !srv.logsVerbose() { // as all commands may count as slow
		return
	}
	srv.LogVerbose(text, append([]any{"client", c.Addr, "id", c.ID, "user", c.User.Load().Name()}, about...)...)
}

// logRejected tells of a connection that is not served.
func (srv *Service) logRejected(remote net.Addr, reason string) {
	srv.LogVerbose(RefusedConnection, "client", client.AddrText(remote), "reason", reason)
}

// tellMonitors gives all monitors a line, and returns how many they are.
func (srv *Service) tellMonitors(line []byte) (told int) {
	all := srv.Clients.Monitors()
	for _, c := range all {
		if c.Push(line, int(srv.Config.OutputBufferLimit.Get())) {
			srv.Stats.OutputLimitCloses.Add(1)
		}
	}
	return len(all)
}
