package client

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"celld/resp/wire"
)

// SetMonitor turns MONITOR on or off for a client. It returns the lines that were pushed until then.
func (l *List) SetMonitor(c *Client, on bool) (pushed []byte) {
	c.pushMu.Lock()
	was := c.monitor.Swap(on) // under pushMu, so Push adds nothing after it is off
	pushed, c.pushed = c.pushed, nil
	c.pushMu.Unlock()
	if was == on {
		return pushed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		if l.monitors == nil {
			l.monitors = map[*Client]struct{}{}
		}
		l.monitors[c] = struct{}{}
	} else {
		delete(l.monitors, c)
	}
	if l.OnMonitors != nil {
		l.OnMonitors(len(l.monitors) > 0)
	}
	return pushed
}

// Monitors returns the clients in MONITOR.
func (l *List) Monitors() []*Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.monitors))
}

// Push gives a client in MONITOR bytes to send; for any other it does nothing. Any goroutine may call it. The client keeps a copy until
// its transport calls Serve. A peer that reads too slowly is closed where it has not taken most bytes: over reports that.
func (c *Client) Push(p []byte, most int) (over bool) {
	c.pushMu.Lock()
	if !c.monitor.Load() { // the client has left MONITOR since the caller listed it
		c.pushMu.Unlock()
		return false
	}
	over = len(c.pushed)+len(p) > most
	wake := len(c.pushed) == 0
	if over {
		c.pushed = nil
	} else {
		c.pushed = append(c.pushed, p...)
	}
	c.pushMu.Unlock()
	if over {
		c.Kill()
	} else if wake {
		c.Conn.Wake()
	}
	return over
}

// DrainPushed appends the bytes that others have pushed to out.
func (c *Client) DrainPushed(out []byte) []byte {
	if !c.monitor.Load() {
		return out
	}
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	out = append(out, c.pushed...)
	c.pushed = nil
	return out
}

// MonitorAddr is the client's address as monitors see it.
func (c *Client) MonitorAddr() string {
	if c.Unix {
		return "unix:" + c.LocalAddr
	}
	return c.Addr
}

// MonitorLine is the line that monitors get for a command that somebody has sent.
func MonitorLine(wallNS int64, who string, args iter.Seq2[int, []byte]) []byte {
	line := fmt.Appendf(nil, "+%d.%06d [0 %s]", wallNS/1e9, wallNS%1e9/1e3, who)
	for _, arg := range args {
		line = append(line, ' ')
		line = wire.AppendWord(line, arg)
	}
	return append(line, "\r\n"...)
}
