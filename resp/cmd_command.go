package resp

import (
	"cmp"
	"slices"
	"strings"

	"celld/resp/acl"
)

func commandCommandRows() []*command {
	return []*command{
		{name: "count", arity: 2, flags: fast, summary: "Returns a count of commands.", since: "2.8.13", group: "server", run: func(s *Session, _ [][]byte) { s.replyInt(int64(len(s.srv.commands.rows))) }},
		{name: "docs", arity: -2, most: shortList, usage: "[command-name ...]", summary: "Returns documentary information about commands.", since: "7.0.0", group: "server", cost: "O(N) where N is the number of commands", run: cmdCommandDocs},
		{name: "getkeys", arity: -4, many: true, usage: "command [arg ...]", summary: "Extracts the key names from an arbitrary command.", since: "2.8.13", group: "server", run: cmdCommandGetKeys},
		{name: "info", arity: -2, most: shortList, usage: "[command-name ...]", summary: "Returns information about commands.", since: "2.8.13", group: "server", cost: "O(N) where N is the number of commands", run: cmdCommandInfo},
		{name: "list", arity: -2, usage: "[FILTERBY MODULE module|ACLCAT category|PATTERN pattern]", summary: "Returns a list of command names.", since: "7.0.0", group: "server", cost: "O(N) where N is the number of commands", run: cmdCommandList},
	}
}

func cmdCommand(s *Session, _ [][]byte) {
	rows := s.srv.commands.rows
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
		if row := s.srv.commands.findFull(name); row != nil {
			s.replyCommandInfo(row)
		} else {
			s.replyNull()
		}
		if s.overOutput(len(s.out)) {
			return
		}
	}
}

// replyCommandInfo writes the ten elements of COMMAND INFO: name, arity, flags, first, last and step of the keys, ACL
// categories, tips, key specifications, subcommands.
func (s *Session) replyCommandInfo(row *command) {
	s.replyArray(10)
	s.replyString(row.fullName())
	s.replyInt(int64(row.arity))
	s.replyStatuses(row.flagNames())
	keys := row.keys
	if keys.counted { // as in Redis: the arguments say which they are
		keys = keyRange{}
	}
	s.replyInt(int64(keys.first))
	s.replyInt(int64(keys.last))
	s.replyInt(int64(keys.step))
	categories := row.categories().Names()
	for i := range categories {
		categories[i] = "@" + categories[i]
	}
	s.replyStatuses(categories)
	s.replyArray(0)
	s.replyKeySpecs(row)
	s.replyArray(len(row.sub))
	for _, sub := range row.sub {
		s.replyCommandInfo(sub)
	}
}

func (s *Session) replyKeySpecs(row *command) {
	if row.keys.step == 0 {
		s.replyArray(0)
		return
	}
	access := "RO"
	if row.flags&write != 0 {
		access = "RW"
	}
	begin, kind, fields := row.keys.first, "range", [3]string{"lastkey", "keystep", "limit"}
	last := row.keys.last
	if last >= 0 {
		last -= row.keys.first // relative to the first key
	}
	values := [3]int{last, row.keys.step, 0}
	if row.keys.counted {
		begin, kind, fields = begin-1, "keynum", [3]string{"keynumidx", "firstkey", "keystep"}
		values = [3]int{0, 1, row.keys.step}
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

func (c *command) flagNames() []string {
	names := []string{}
	for _, f := range flagNames {
		if c.flags&f.bit != 0 {
			names = append(names, f.name)
		}
	}
	if c.keys.counted {
		names = append(names, "movablekeys")
	}
	return names
}

func cmdCommandList(s *Session, args [][]byte) {
	keep := func(*command) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 5 && strings.EqualFold(string(args[2]), "FILTERBY"):
		value := string(args[4])
		switch strings.ToLower(string(args[3])) {
		case "module":
			keep = func(row *command) bool { return row.flags&module != 0 && value == "redis-cell" }
		case "aclcat":
			category := acl.ParseCategory(value)
			keep = func(row *command) bool { return row.categories()&category != 0 }
		case "pattern":
			g, ok := newGlob(args[4], true)
			if !ok {
				s.replyError(errPatternLong, maxWildPattern)
				return
			}
			keep = func(row *command) bool { return g.match([]byte(row.fullName())) }
		default:
			s.replyError(errSyntax)
			return
		}
	default:
		s.replyError(errSyntax)
		return
	}
	var names []string
	s.srv.commands.each(func(row *command) {
		if keep(row) && (row.parent == nil || len(args) > 2) {
			names = append(names, row.fullName())
		}
	})
	s.replyStrings(names)
}

func cmdCommandGetKeys(s *Session, args [][]byte) {
	target := args[2:]
	row := s.srv.commands.find(target[0])
	if row != nil && len(row.sub) > 0 && len(target) > 1 {
		row = row.findSub(target[1])
	}
	switch {
	case row == nil:
		s.replyError(errBadCommand)
	case row.keys.step == 0:
		s.replyError(errNoKeysCommand)
	case row.arity > 0 && len(target) != row.arity, len(target) < -row.arity, len(target) <= row.keys.first:
		s.replyError(errBadCommandArgs)
	default:
		first, last := row.keyBounds(target)
		keys := 0
		if last >= first {
			keys = 1 + (last-first)/row.keys.step
		}
		if keys == 0 && row.group != "scripting" { // a script need not have keys
			s.replyError(errBadCommandKeys)
			return
		}
		s.replyArray(keys)
		at := first
		s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
			for end := at + keysStep*row.keys.step; at <= min(last, end); at += row.keys.step {
				s.replyBulk(args[2+at])
			}
			return at <= last
		})
	}
}

func cmdCommandDocs(s *Session, args [][]byte) {
	rows := s.srv.commands.rows
	if len(args) > 2 {
		rows = nil
		for _, name := range args[2:] {
			if row := s.srv.commands.findFull(name); row != nil && !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	s.replyDocs(rows)
}

// replyDocs writes a map from full names to the fields of COMMAND DOCS.
func (s *Session) replyDocs(rows []*command) {
	s.replyMap(len(rows))
	for _, row := range rows {
		arguments := parseUsage(row.usage)
		fields := 4
		for _, more := range []bool{len(arguments) > 0, row.flags&module != 0, len(row.sub) > 0} {
			if more {
				fields++
			}
		}
		s.replyString(row.fullName())
		s.replyMap(fields)
		s.replyPair("summary", row.summary)
		s.replyPair("since", cmp.Or(row.since, "1.0.0"))
		s.replyPair("group", row.group)
		s.replyPair("complexity", cmp.Or(row.cost, "O(1)"))
		if row.flags&module != 0 {
			s.replyPair("module", "redis-cell")
		}
		if len(arguments) > 0 {
			s.replyString("arguments")
			s.replyArguments(arguments)
		}
		if len(row.sub) > 0 {
			s.replyString("subcommands")
			s.replyDocs(row.sub)
		}
	}
}
