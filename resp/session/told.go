package session

import (
	"context"
	"net"

	"celld/resp/client"
	"celld/resp/loglimit"
)

// mostTold is how many lines of one kind the log gets a second.
const mostTold = 10

// Tell logs, at loglevel verbose and debug, which client is slow or refused, and why: its address, its user, its command's name. about has
// neither keys, nor values, nor what may be a secret. A flood of refusals leaves its first lines in each second. Any goroutine may call it.
func (srv *Service) Tell(text string, about ...any) {
	if srv.tells() {
		srv.Log.Bounded(mostTold, text, loglimit.Verbose, text, about...)
	}
}

// tells says that somebody wants the lines of Tell.
func (srv *Service) tells() bool { return srv.Log.Enabled(context.Background(), loglimit.Verbose) }

// Texts of Tell.
const (
	TellConnection = "a connection is refused"
	TellRequest    = "an HTTP request is refused"
	tellCommand    = "a command is refused"
	tellPassword   = "wrong password"
	tellSlow       = "slow command"
)

// tellOf is Tell about a client.
func (srv *Service) tellOf(c *client.Client, text string, about ...any) {
	if !srv.tells() { // as all commands may count as slow
		return
	}
	srv.Tell(text, append([]any{"client", c.Addr, "id", c.ID, "user", c.User.Load().Name()}, about...)...)
}

// tellRejected tells of a connection that is not served.
func (srv *Service) tellRejected(remote net.Addr, reason string) {
	srv.Tell(TellConnection, "client", client.AddrText(remote), "reason", reason)
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
