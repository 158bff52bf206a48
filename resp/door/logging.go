package door

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
func (d *Door) LogVerbose(text string, about ...any) {
	if d.logsVerbose() {
		d.Log.Bounded(mostLogged, text, loglimit.Verbose, text, about...)
	}
}

// logsVerbose reports whether the log shows the lines of LogVerbose.
func (d *Door) logsVerbose() bool {
	return d.Log.Enabled(context.Background(), loglimit.Verbose)
}

// Texts of LogVerbose.
const (
	RefusedConnection = "a connection is refused"
	RefusedRequest    = "an HTTP request is refused"
	RefusedCommand    = "a command is refused"
	WrongPassword     = "wrong password"
	SlowCommand       = "slow command"
)

// LogOf is LogVerbose about a client.
func (d *Door) LogOf(c *client.Client, text string, about ...any) {
	if !d.logsVerbose() { // as all commands may count as slow
		return
	}
	d.LogVerbose(text, append([]any{"client", c.Addr, "id", c.ID, "user", c.User.Load().Name()}, about...)...)
}

// LogRejected tells of a connection that is not served.
func (d *Door) LogRejected(remote net.Addr, reason string) {
	d.LogVerbose(RefusedConnection, "client", client.AddrText(remote), "reason", reason)
}

// TellMonitors gives all monitors a line, and returns how many they are.
func (d *Door) TellMonitors(line []byte) (told int) {
	all := d.Clients.Monitors()
	for _, c := range all {
		if c.Push(line, int(d.Config.OutputBufferLimit.Get())) {
			d.Stats.OutputLimitCloses.Add(1)
		}
	}
	return len(all)
}

// WarnRefused logs, at any loglevel and once a second at most, why an HTTP request is refused that a proxy may have sent.
func (d *Door) WarnRefused(client, why string) {
	d.Log.WarnLimited(RefusedRequest, "client", client, "reason", why)
}

// HTTPHandshakeFailed counts a TLS handshake of the HTTP port that failed, and logs it. why has the client's address.
func (d *Door) HTTPHandshakeFailed(why string) {
	d.Stats.FailedHandshakes.Add(1)
	d.Log.WarnLimited("a TLS handshake of the HTTP port failed", "error", why)
}
