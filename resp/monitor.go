package resp

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// monitorList is the sessions in MONITOR.
type monitorList struct {
	mu   sync.Mutex
	list map[*Session]struct{}
}

// setMonitor turns MONITOR on or off for a session.
func (srv *service) setMonitor(s *Session, on bool) {
	m := &srv.clients.monitors
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		if m.list == nil {
			m.list = map[*Session]struct{}{}
		}
		m.list[s] = struct{}{}
	} else {
		delete(m.list, s)
	}
	srv.gate.set(gateMonitored, len(m.list) > 0)
}

func cmdMonitor(s *Session, _ [][]byte) {
	if s.tx.running {
		s.call.Error(errMonitorInExec)
		return
	}
	s.setMonitor(true)
	s.call.OK()
}

// setMonitor turns MONITOR on or off for the session. It moves the lines that were pushed until then to the output.
func (s *Session) setMonitor(on bool) {
	c := &s.client
	c.pushMu.Lock()
	was := c.monitor.Swap(on) // under pushMu, so Push adds nothing after it is off
	if s.call != nil {        // else the connection is closed
		s.call.Out = append(s.call.Out, c.pushed...)
	}
	c.pushed = nil
	c.pushMu.Unlock()
	if was != on {
		s.srv.setMonitor(s, on)
	}
}

func (m *monitorList) all() []*Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.list))
}

func (m *monitorList) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.list)
}

// feedMonitors sends a command to every monitor in Redis's form, without secrets.
func (srv *service) feedMonitors(from *Session, args [][]byte) {
	var line []byte
	nowNS := from.wallNS()
	who := from.client.monitorAddr()
	if r := srv.running.Load(); r != nil && r.s == from {
		who = "lua"
	}
	line = fmt.Appendf(line, "+%d.%06d [0 %s]", nowNS/1e9, nowNS%1e9/1e3, who)
	for _, arg := range redact(args) {
		line = append(line, ' ')
		line = appendQuoted(line, arg)
	}
	line = append(line, "\r\n"...)
	from.once(func() {
		all := srv.clients.monitors.all()
		for _, s := range all {
			s.Push(line)
		}
		from.scratch.slice.did(len(all), len(all)*len(line))
	})
}

// Push gives a session in MONITOR bytes to send; for any other it does nothing. Any goroutine may call it. The session keeps a
// copy until its transport calls Serve. A peer that reads too slowly is closed at client-output-buffer-limit.
func (s *Session) Push(p []byte) {
	c := &s.client
	c.pushMu.Lock()
	if !c.monitor.Load() { // it has stopped meanwhile
		c.pushMu.Unlock()
		return
	}
	over := len(c.pushed)+len(p) > int(s.srv.cfg.OutputBufferLimit.Get())
	wake := len(c.pushed) == 0
	if over {
		c.pushed = nil
	} else {
		c.pushed = append(c.pushed, p...)
	}
	c.pushMu.Unlock()
	if over {
		s.srv.stats.OutputLimitCloses.Add(1)
		s.kill()
	} else if wake {
		s.tr.Wake()
	}
}

// takePushed moves pushed bytes into the output.
func (s *Session) takePushed() {
	c := &s.client
	if !c.monitor.Load() {
		return
	}
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	s.call.Out = append(s.call.Out, c.pushed...)
	c.pushed = nil
}

func (c *client) monitorAddr() string {
	if c.unix {
		return "unix:" + c.localAddr
	}
	return c.addr
}

const redacted = "(redacted)"

// redact replaces what may be secret.
func redact(args [][]byte) [][]byte {
	from := secretFrom(args)
	if from >= len(args) {
		return args
	}
	return append(slices.Clone(args[:from]), slices.Repeat([][]byte{[]byte(redacted)}, len(args)-from)...)
}

// secretFrom returns which argument is the first that may be secret, as all behind it: the passwords of AUTH and HELLO, the arguments of
// CONFIG's subcommands and of ACL SETUSER, and those of the command that ACL DRYRUN is about, which may be any of these.
func secretFrom(args [][]byte) (from int) {
	from = len(args)
	switch {
	case bytes.EqualFold(args[0], []byte("auth")):
		from = 1
	case bytes.EqualFold(args[0], []byte("hello")):
		from = 2
	case bytes.EqualFold(args[0], []byte("config")) && len(args) > 2:
		from = 2
	case bytes.EqualFold(args[0], []byte("acl")) && len(args) > 2 && bytes.EqualFold(args[1], []byte("setuser")):
		from = 2
	case bytes.EqualFold(args[0], []byte("acl")) && len(args) > 4 && bytes.EqualFold(args[1], []byte("dryrun")):
		from = 4
	}
	return from
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends bytes as Redis's sdscatrepr does: in quotes, printable ASCII as it is, the rest escaped.
func appendQuoted(dst, b []byte) []byte {
	dst = append(dst, '"')
	for _, c := range b {
		switch c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\a':
			dst = append(dst, `\a`...)
		case '\b':
			dst = append(dst, `\b`...)
		default:
			if c >= ' ' && c <= '~' {
				dst = append(dst, c)
			} else {
				dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			}
		}
	}
	return append(dst, '"')
}
