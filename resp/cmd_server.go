package resp

import (
	"strconv"
	"strings"

	"celld/resp/command"
)

func cmdTime(s *Session, _ [][]byte) {
	us := s.wallNS() / 1e3
	s.call.Array(2)
	s.call.String(strconv.FormatInt(us/1e6, 10))
	s.call.String(strconv.FormatInt(us%1e6, 10))
}

func moduleRows() []*command.Row {
	return []*command.Row{
		{Name: "list", Arity: 2, Flags: command.Admin | command.NoScript, Summary: "Returns all loaded modules: redis-cell, whose command this server has built in.", Since: "4.0.0", Group: "server", Run: onSession(func(s *Session, _ [][]byte) { s.replyModules() })},
	}
}

// moduleVersion is the release of redis-cell whose replies celld gives, 0.5.0, written as a module version.
const moduleVersion = 500

// replyModules lists redis-cell as a loaded module, because clients look for it before they use CL.THROTTLE.
func (s *Session) replyModules() {
	s.call.Array(1)
	s.call.Map(4)
	s.call.Pair("name", "redis-cell")
	s.call.Field("ver", moduleVersion)
	s.call.Pair("path", "")
	s.call.String("args")
	s.call.Array(0)
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

// cmdShutdown stops the server as SIGTERM does, but without --shutdown-delay. If it must take a snapshot and cannot, the server goes
// on, as Redis does.
func (srv *Server) cmdShutdown(s *Session, args [][]byte) {
	var save, nosave, abort, force, other bool
	for _, arg := range args[1:] {
		switch strings.ToLower(string(arg)) {
		case "save":
			save = true
		case "nosave":
			nosave = true
		case "now":
			other = true
		case "force":
			force = true
		case "abort":
			abort = true
		default:
			s.call.Error(errSyntax)
			return
		}
	}
	switch {
	case save && nosave, abort && (save || nosave || other || force):
		s.call.Error(errSyntax)
		return
	case abort && srv.abortShutdown():
		srv.log.Info("a client aborted the shutdown", "client", s.client.addr)
		s.call.OK()
		return
	case abort:
		s.call.Error(errNoShutdown)
		return
	}
	switch {
	case srv.gate.has(gateBusy) && !nosave:
		s.call.Error(errBusy)
		return
	case save && srv.engine != nil:
		s.call.Error(errEngineKeeps, "SHUTDOWN SAVE")
		return
	}
	srv.log.Info("a client asked for shutdown", "client", s.client.addr)
	if !srv.prepareShutdown(save, nosave) && !force {
		s.call.Error(errShutdownSave)
		return
	}
	srv.shutdown()
	s.end = afterReply
}
