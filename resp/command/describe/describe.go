package describe

import (
	"cmp"
	"slices"
	"strings"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/glob"
)

// Row is COMMAND, which describes a table.
func Row(table func() *command.Table) *command.Row {
	d := describer{table}
	return &command.Row{Name: "command", Arity: -1, Flags: spec.Loading, Summary: "Returns detailed information about all commands.",
		Since: "2.8.13", Group: "server", Cost: "O(N) where N is the number of commands", Run: d.all, Sub: d.rows()}
}

// describer describes a table.
type describer struct{ table func() *command.Table }

func (d describer) rows() []*command.Row {
	return []*command.Row{
		{Name: "count", Arity: 2, Flags: spec.Fast, Summary: "Returns a count of commands.", Since: "2.8.13", Group: "server", Run: func(c *command.Call) { c.Int(int64(len(d.table().Rows))) }},
		{Name: "docs", Arity: -2, Most: spec.ShortList, Usage: "[command-name ...]", Summary: "Returns documentary information about commands.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: d.docs},
		{Name: "getkeys", Arity: -4, Many: true, Usage: "command [arg ...]", Summary: "Extracts the key names from an arbitrary command.", Since: "2.8.13", Group: "server", Run: d.getKeys},
		{Name: "info", Arity: -2, Most: spec.ShortList, Usage: "[command-name ...]", Summary: "Returns information about commands.", Since: "2.8.13", Group: "server", Cost: "O(N) where N is the number of commands", Run: d.info},
		{Name: "list", Arity: -2, Usage: "[FILTERBY MODULE module|ACLCAT category|PATTERN pattern]", Summary: "Returns a list of command names.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: d.list},
	}
}

func (d describer) all(c *command.Call) {
	rows := d.table().Rows
	c.Array(len(rows))
	for _, row := range rows {
		replyCommandInfo(c, row)
	}
}

func (d describer) info(c *command.Call) {
	if len(c.Args) == 2 {
		d.all(c)
		return
	}
	c.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if row := d.table().FindFull(name); row != nil {
			replyCommandInfo(c, row)
		} else {
			c.Null()
		}
		if c.OverOutput(len(c.Out)) {
			return
		}
	}
}

// replyCommandInfo writes the ten elements of COMMAND INFO: name, arity, flags, first, last and step of the keys, ACL
// categories, tips, key specifications, subcommands.
func replyCommandInfo(c *command.Call, row *command.Row) {
	c.Array(10)
	c.String(row.FullName())
	c.Int(int64(row.Arity))
	c.Statuses(row.FlagNames())
	keys := row.Keys
	if keys.Counted { // as in Redis: the arguments say which they are
		keys = spec.KeyRange{}
	}
	c.Int(int64(keys.First))
	c.Int(int64(keys.Last))
	c.Int(int64(keys.Step))
	categories := row.Categories().Names()
	for i := range categories {
		categories[i] = "@" + categories[i]
	}
	c.Statuses(categories)
	c.Set(0)
	replyKeySpecs(c, row)
	c.Set(len(row.Sub))
	for _, sub := range row.Sub {
		replyCommandInfo(c, sub)
	}
}

func replyKeySpecs(c *command.Call, row *command.Row) {
	if row.Keys.Step == 0 {
		c.Set(0)
		return
	}
	access := []string{"RO", "access"}
	if row.Flags&spec.Write != 0 {
		access[0] = "RW"
	}
	if row.Access == spec.Updates {
		access = append(access, "update")
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
	c.Set(1)
	c.Map(3)
	c.String("flags")
	c.Statuses(access)
	c.String("begin_search")
	c.Map(2)
	c.Pair("type", "index")
	c.String("spec")
	c.Map(1)
	c.Field("index", int64(begin))
	c.String("find_keys")
	c.Map(2)
	c.Pair("type", kind)
	c.String("spec")
	c.Map(3)
	for i, field := range fields {
		c.Field(field, int64(values[i]))
	}
}

func (d describer) list(c *command.Call) {
	keep := func(*command.Row) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 5 && strings.EqualFold(string(c.Args[2]), "FILTERBY"):
		value := string(c.Args[4])
		switch strings.ToLower(string(c.Args[3])) {
		case "module":
			keep = func(row *command.Row) bool { return row.Flags&spec.Module != 0 && value == "redis-cell" }
		case "aclcat":
			category := acl.ParseCategory(value)
			keep = func(row *command.Row) bool { return row.Categories()&category != 0 }
		case "pattern":
			g, ok := glob.Compile(c.Args[4], true)
			if !ok {
				c.Error(argument.ErrPatternLong, glob.MaxWild)
				return
			}
			keep = func(row *command.Row) bool { return g.Match([]byte(row.FullName())) }
		default:
			c.Error(argument.ErrSyntax)
			return
		}
	default:
		c.Error(argument.ErrSyntax)
		return
	}
	var names []string
	d.table().Each(func(row *command.Row) {
		if keep(row) && (row.Parent == nil || len(c.Args) > 2) {
			names = append(names, row.FullName())
		}
	})
	c.Strings(names)
}

func (d describer) getKeys(c *command.Call) {
	target := c.Args[2:]
	row := d.table().FindCall(target)
	switch {
	case row == nil:
		c.Error(ErrBadCommand)
	case row.Keys.Step == 0:
		c.Error(ErrNoKeysCommand)
	case row.ArityError(len(target)) != "", len(target) < row.Keys.First:
		c.Error(ErrBadCommandArgs)
	default:
		first, last := row.Keys.Bounds(target)
		keys := 0
		if last >= first {
			keys = 1 + (last-first)/row.Keys.Step
		}
		if keys == 0 && row.Group != "scripting" { // a script need not have keys
			c.Error(errBadCommandKeys)
			return
		}
		c.Array(keys)
		at := first
		c.InSteps(func(c *command.Call) (more bool) {
			for end := at + 1000*row.Keys.Step; at <= min(last, end); at += row.Keys.Step {
				c.Bulk(c.Args[2+at])
			}
			return at <= last
		})
	}
}

func (d describer) docs(c *command.Call) {
	rows := d.table().Rows
	if len(c.Args) > 2 {
		rows = nil
		for _, name := range c.Args[2:] {
			if row := d.table().FindFull(name); row != nil && !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	replyDocs(c, rows)
}

// replyDocs writes a map from full names to the fields of COMMAND DOCS.
func replyDocs(c *command.Call, rows []*command.Row) {
	c.Map(len(rows))
	for _, row := range rows {
		arguments := parseUsage(row.Usage)
		fields := 4
		for _, more := range []bool{len(arguments) > 0, row.Flags&spec.Module != 0, len(row.Sub) > 0} {
			if more {
				fields++
			}
		}
		c.String(row.FullName())
		c.Map(fields)
		c.Pair("summary", row.Summary)
		c.Pair("since", cmp.Or(row.Since, "0.1.0")) // celld's first release
		c.Pair("group", row.Group)
		c.Pair("complexity", cmp.Or(row.Cost, "O(1)"))
		if row.Flags&spec.Module != 0 {
			c.Pair("module", "redis-cell")
		}
		if len(arguments) > 0 {
			c.String("arguments")
			replyArguments(c, arguments)
		}
		if len(row.Sub) > 0 {
			c.String("subcommands")
			replyDocs(c, row.Sub)
		}
	}
}
