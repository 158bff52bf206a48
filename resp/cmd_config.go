package resp

import (
	"bytes"
	"log/slog"

	"celld/resp/command"
	"celld/resp/glob"
	"celld/resp/stats"
)

func configRows() []*command.Row {
	return []*command.Row{
		{Name: "get", Arity: -3, Most: command.ShortList, Flags: command.NoScript | command.Admin, Usage: "parameter ...", Summary: "Returns the values of configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: onSession(cmdConfigGet)},
		{Name: "set", Arity: -4, Flags: command.NoScript | command.Admin, Usage: "parameter value ...", Summary: "Sets configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: onSession(cmdConfigSet)},
		{Name: "resetstat", Arity: 2, Flags: command.NoScript | command.Admin, Summary: "Resets the server's statistics.", Since: "2.0.0", Group: "server", Run: onSession(cmdConfigResetStat)},
		{Name: "rewrite", Arity: 2, Flags: command.NoScript | command.Admin, Summary: "Returns an error: there is no configuration file.", Since: "2.8.0", Group: "server", Run: onSession(func(s *Session, _ [][]byte) { s.call.Error(errConfigRewrite) })},
	}
}

// cmdConfigGet looks for one pattern in a step.
func cmdConfigGet(s *Session, args [][]byte) {
	names := s.srv.cfg.Names()
	asked, at := map[string]string{}, 2 // by name: how it comes back
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		g, ok := glob.Compile(args[at], true)
		if !ok {
			s.call.Error(errPatternLong, glob.MaxWild)
			return false
		}
		for _, name := range names {
			if _, found := asked[name]; found || !g.Match([]byte(name)) {
				continue
			}
			asked[name] = name
			if !bytes.ContainsAny(args[at], "*?[") { // a name without wildcards comes back in the caller's spelling
				asked[name] = string(args[at])
			}
		}
		if at++; at < len(args) {
			return true
		}
		s.replyParameters(asked)
		return false
	})
}

func (s *Session) replyParameters(asked map[string]string) {
	var found [][2]string
	s.srv.cfg.View(!s.gate.has(gateRights), func(name, value string) {
		if as, ok := asked[name]; ok {
			found = append(found, [2]string{as, value})
		}
	})
	s.call.Map(len(found))
	s.call.Pairs(found)
}

func cmdConfigSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.call.Error(errSyntax)
		return
	}
	changed, err := s.srv.cfg.Change(args[2:])
	if err != nil {
		s.call.Error("%s", err)
		return
	}
	for _, c := range changed {
		s.srv.log.Bounded(1, c[0], slog.LevelInfo, "setting changed", "name", c[0], "value", c[1], "client", s.client.addr)
	}
	s.call.OK()
}

func cmdConfigResetStat(s *Session, _ [][]byte) {
	s.countDecisions()
	s.srv.metrics.Reset(s.nowNS)
	s.srv.stats.Errors.Reset()
	s.srv.commands.Each(func(row *command.Row) { stats.Of(row).Reset() })
	s.call.OK()
}
