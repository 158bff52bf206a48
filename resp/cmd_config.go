package resp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"celld/persistence"
	"celld/resp/command"
	"celld/resp/glob"
	"celld/resp/stats"
)

func configRows() []*command.Row {
	return []*command.Row{
		{Name: "get", Arity: -3, Most: command.ShortList, Flags: command.NoScript | command.Admin, Usage: "parameter ...", Summary: "Returns the values of configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: onSession(cmdConfigGet)},
		{Name: "set", Arity: -4, Flags: command.NoScript | command.Admin, Usage: "parameter value ...", Summary: "Sets configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: onSession(cmdConfigSet)},
		{Name: "resetstat", Arity: 2, Flags: command.NoScript | command.Admin, Summary: "Resets the server's statistics.", Since: "2.0.0", Group: "server", Run: onSession(cmdConfigResetStat)},
		{Name: "rewrite", Arity: 2, Flags: command.NoScript | command.Admin, Summary: "Returns an error: there is no configuration file.", Since: "2.8.0", Group: "server", Run: onSession(func(s *Session, _ [][]byte) { s.replyError(errConfigRewrite) })},
	}
}

// fixedParameter is a parameter of Redis that tools ask for. celld has no setting for it: there is one database.
const fixedParameter = "databases"

// cmdConfigGet looks for one pattern in a step.
func cmdConfigGet(s *Session, args [][]byte) {
	names := []string{fixedParameter}
	for _, row := range s.srv.cfg.rows {
		names = append(names, row.Name)
	}
	asked, at := map[string]string{}, 2 // by name: how it comes back
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		g, ok := glob.Compile(args[at], true)
		if !ok {
			s.replyError(errPatternLong, glob.MaxWild)
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
	add := func(name, value string) {
		if as, ok := asked[name]; ok {
			found = append(found, [2]string{as, value})
		}
	}
	s.srv.configView.RLock()
	for _, row := range s.srv.cfg.rows {
		value := row.Value.String()
		if row.secret && s.gate.has(gateRights) {
			value = hidden(value)
		}
		add(row.Name, value)
	}
	s.srv.configView.RUnlock()
	add(fixedParameter, "1")
	s.replyMap(len(found))
	s.replyPairs(found)
}

// cmdConfigSet sets all of its parameters or none. It reads and checks all of them before it changes any.
func cmdConfigSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.replyError(errSyntax)
		return
	}
	s.srv.configMu.Lock()
	defer s.srv.configMu.Unlock()
	var rows []*Setting
	for i := 2; i < len(args); i += 2 {
		name := strings.ToLower(string(args[i]))
		row := s.srv.cfg.row(name)
		switch {
		case row == nil && name != fixedParameter:
			s.replyError(errConfigUnknown, args[i])
			return
		case row == nil || !row.mutable:
			s.replyError(errConfigFailed, args[i], "can't set immutable config")
			return
		case slices.Contains(rows, row):
			s.replyError(errConfigTwice, args[i])
			return
		}
		rows = append(rows, row)
	}
	changes, before := make([]change, len(rows)), make([]string, len(rows))
	for i, row := range rows {
		before[i] = row.Value.String()
		var err error
		if changes[i], err = row.Value.parse(string(args[3+2*i])); err != nil {
			s.replyError(errConfigFailed, row.Name, cmp.Or(row.refusal, err.Error()))
			return
		}
	}
	for i, row := range rows {
		if err := changes[i].check(); err != nil {
			why := err.Error()
			if errors.Is(err, persistence.ErrNeedsRestart) {
				why = fmt.Sprintf(errConfigRestart, row.Name, args[3+2*i])
			}
			s.replyError(errConfigFailed, row.Name, why)
			return
		}
	}
	s.srv.configView.Lock() // released before the consequences, which may take long
	for i := range changes {
		changes[i].put()
	}
	s.srv.configView.Unlock()
	for i := range changes {
		changes[i].apply()
	}
	for i, row := range rows {
		value := row.Value.String()
		if value == before[i] {
			continue
		}
		if row.secret {
			value = "(secret)"
		}
		s.srv.log.Bounded(1, row.Name, slog.LevelInfo, "setting changed", "name", row.Name, "value", value, "client", s.client.addr)
	}
	s.replyOK()
}

func cmdConfigResetStat(s *Session, _ [][]byte) {
	s.countDecisions()
	s.srv.metrics.Reset(s.nowNS)
	s.srv.stats.Errors.Reset()
	s.srv.commands.Each(func(row *command.Row) { stats.Of(row).Reset() })
	s.replyOK()
}
