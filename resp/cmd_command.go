package resp

import (
	"cmp"
	"slices"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/glob"
)

func commandCommandRows() []*command.Row {
	return []*command.Row{
		{Name: "count", Arity: 2, Flags: command.Fast, Summary: "Returns a count of commands.", Since: "2.8.13", Group: "server", Run: onSession(func(s *Session, _ [][]byte) { s.replyInt(int64(len(s.srv.commands.Rows))) })},
		{Name: "docs", Arity: -2, Most: command.ShortList, Usage: "[command-name ...]", Summary: "Returns documentary information about commands.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: onSession(cmdCommandDocs)},
		{Name: "getkeys", Arity: -4, Many: true, Usage: "command [arg ...]", Summary: "Extracts the key names from an arbitrary command.", Since: "2.8.13", Group: "server", Run: onSession(cmdCommandGetKeys)},
		{Name: "info", Arity: -2, Most: command.ShortList, Usage: "[command-name ...]", Summary: "Returns information about commands.", Since: "2.8.13", Group: "server", Cost: "O(N) where N is the number of commands", Run: onSession(cmdCommandInfo)},
		{Name: "list", Arity: -2, Usage: "[FILTERBY MODULE module|ACLCAT category|PATTERN pattern]", Summary: "Returns a list of command names.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: onSession(cmdCommandList)},
	}
}

func cmdCommand(s *Session, _ [][]byte) {
	rows := s.srv.commands.Rows
	s.replyArray(len(rows))
	for _, row := range rows {
		s.replyCommandInfo(row)
	}
}

func cmdCommandInfo(s *Session, args [][]byte) {
	if len(args) == 2 {
		cmdCommand(s, args)
		return
	}
	s.replyArray(len(args) - 2)
	for _, name := range args[2:] {
		if row := s.srv.commands.FindFull(name); row != nil {
			s.replyCommandInfo(row)
		} else {
			s.replyNull()
		}
		if s.overOutput(len(s.call.Out)) {
			return
		}
	}
}

// replyCommandInfo writes the ten elements of COMMAND INFO: name, arity, flags, first, last and step of the keys, ACL
// categories, tips, key specifications, subcommands.
func (s *Session) replyCommandInfo(row *command.Row) {
	s.replyArray(10)
	s.replyString(row.FullName())
	s.replyInt(int64(row.Arity))
	s.replyStatuses(row.FlagNames())
	keys := row.Keys
	if keys.Counted { // as in Redis: the arguments say which they are
		keys = command.KeyRange{}
	}
	s.replyInt(int64(keys.First))
	s.replyInt(int64(keys.Last))
	s.replyInt(int64(keys.Step))
	categories := row.Categories().Names()
	for i := range categories {
		categories[i] = "@" + categories[i]
	}
	s.replyStatuses(categories)
	s.replyArray(0)
	s.replyKeySpecs(row)
	s.replyArray(len(row.Sub))
	for _, sub := range row.Sub {
		s.replyCommandInfo(sub)
	}
}

func (s *Session) replyKeySpecs(row *command.Row) {
	if row.Keys.Step == 0 {
		s.replyArray(0)
		return
	}
	access := "RO"
	if row.Flags&command.Write != 0 {
		access = "RW"
	}
	begin, kind, fields := row.Keys.First, "range", [3]string{"lastkey", "keystep", "limit"}
	last := row.Keys.Last
	if last >= 0 {
		last -= row.Keys.First // relative to the first key
	}
	values := [3]int{last, row.Keys.Step, 0}
	if row.Keys.Counted {
		begin, kind, fields = begin-1, "keynum", [3]string{"keynumidx", "firstkey", "keystep"}
		values = [3]int{0, 1, row.Keys.Step}
	}
	s.replyArray(1)
	s.replyMap(3)
	s.replyString("flags")
	s.replyStatuses([]string{access, "access"})
	s.replyString("begin_search")
	s.replyMap(2)
	s.replyPair("type", "index")
	s.replyString("spec")
	s.replyMap(1)
	s.replyField("index", int64(begin))
	s.replyString("find_keys")
	s.replyMap(2)
	s.replyPair("type", kind)
	s.replyString("spec")
	s.replyMap(3)
	for i, field := range fields {
		s.replyField(field, int64(values[i]))
	}
}

func cmdCommandList(s *Session, args [][]byte) {
	keep := func(*command.Row) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 5 && strings.EqualFold(string(args[2]), "FILTERBY"):
		value := string(args[4])
		switch strings.ToLower(string(args[3])) {
		case "module":
			keep = func(row *command.Row) bool { return row.Flags&command.Module != 0 && value == "redis-cell" }
		case "aclcat":
			category := acl.ParseCategory(value)
			keep = func(row *command.Row) bool { return row.Categories()&category != 0 }
		case "pattern":
			g, ok := glob.Compile(args[4], true)
			if !ok {
				s.replyError(errPatternLong, glob.MaxWild)
				return
			}
			keep = func(row *command.Row) bool { return g.Match([]byte(row.FullName())) }
		default:
			s.replyError(errSyntax)
			return
		}
	default:
		s.replyError(errSyntax)
		return
	}
	var names []string
	s.srv.commands.Each(func(row *command.Row) {
		if keep(row) && (row.Parent == nil || len(args) > 2) {
			names = append(names, row.FullName())
		}
	})
	s.replyStrings(names)
}

func cmdCommandGetKeys(s *Session, args [][]byte) {
	target := args[2:]
	row := s.srv.commands.Find(target[0])
	if row != nil && len(row.Sub) > 0 && len(target) > 1 {
		row = row.FindSub(target[1])
	}
	switch {
	case row == nil:
		s.replyError(errBadCommand)
	case row.Keys.Step == 0:
		s.replyError(errNoKeysCommand)
	case row.Arity > 0 && len(target) != row.Arity, len(target) < -row.Arity, len(target) <= row.Keys.First:
		s.replyError(errBadCommandArgs)
	default:
		first, last := row.KeyBounds(target)
		keys := 0
		if last >= first {
			keys = 1 + (last-first)/row.Keys.Step
		}
		if keys == 0 && row.Group != "scripting" { // a script need not have keys
			s.replyError(errBadCommandKeys)
			return
		}
		s.replyArray(keys)
		at := first
		s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
			for end := at + 1000*row.Keys.Step; at <= min(last, end); at += row.Keys.Step {
				s.replyBulk(args[2+at])
			}
			return at <= last
		})
	}
}

func cmdCommandDocs(s *Session, args [][]byte) {
	rows := s.srv.commands.Rows
	if len(args) > 2 {
		rows = nil
		for _, name := range args[2:] {
			if row := s.srv.commands.FindFull(name); row != nil && !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	s.replyDocs(rows)
}

// replyDocs writes a map from full names to the fields of COMMAND DOCS.
func (s *Session) replyDocs(rows []*command.Row) {
	s.replyMap(len(rows))
	for _, row := range rows {
		arguments := parseUsage(row.Usage)
		fields := 4
		for _, more := range []bool{len(arguments) > 0, row.Flags&command.Module != 0, len(row.Sub) > 0} {
			if more {
				fields++
			}
		}
		s.replyString(row.FullName())
		s.replyMap(fields)
		s.replyPair("summary", row.Summary)
		s.replyPair("since", cmp.Or(row.Since, "1.0.0"))
		s.replyPair("group", row.Group)
		s.replyPair("complexity", cmp.Or(row.Cost, "O(1)"))
		if row.Flags&command.Module != 0 {
			s.replyPair("module", "redis-cell")
		}
		if len(arguments) > 0 {
			s.replyString("arguments")
			s.replyArguments(arguments)
		}
		if len(row.Sub) > 0 {
			s.replyString("subcommands")
			s.replyDocs(row.Sub)
		}
	}
}

func upper(s string) string { return strings.ToUpper(s) }
