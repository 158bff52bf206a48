package command

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"celld/resp/acl"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/glob"
)

// maxName is longer than every command's name.
const maxName = 32

// Table finds rows by name.
type Table struct {
	Rows   []*Row
	byName map[string]*Row
	stats  func() any
}

// NewTable returns the table of these rows, each of which gets its Stats. Each container gets the subcommand HELP. COMMAND and INFO list
// the rows by name, so that no list depends on which family has a command.
func NewTable(rows []*Row, stats func() any) *Table {
	slices.SortFunc(rows, func(a, b *Row) int { return cmp.Compare(a.Name, b.Name) })
	t := &Table{Rows: rows, byName: map[string]*Row{}, stats: stats}
	for _, row := range rows {
		t.Add(row)
		if len(row.Sub) == 0 {
			continue
		}
		row.Sub = append(row.Sub, &Row{
			Name: "help", Arity: 2, Flags: row.Flags & spec.NoAuth, Summary: "Returns helpful text about the different subcommands.",
			Since: row.Since, Group: row.Group, Run: func(c *Call) { c.help(row) },
		})
		for _, sub := range row.Sub {
			sub.Parent, sub.Stats = row, stats()
			sub.ACL = newACL(sub)
			row.ACL.Subs = append(row.ACL.Subs, sub.ACL)
		}
	}
	return t
}

// Add makes a row known to Find. COMMAND does not show it.
func (t *Table) Add(row *Row) {
	if row.Stats = t.stats(); row.ACL == nil {
		row.ACL = newACL(row)
	}
	t.byName[row.Name] = row
}

func newACL(row *Row) *acl.Command {
	return &acl.Command{Name: row.FullName(), Categories: row.Categories(), Public: row.Flags&spec.NoAuth != 0}
}

// ACL returns the commands as rules see them. Each table of the same rows has the same numbers.
func (t *Table) ACL() *acl.Table {
	list := make([]*acl.Command, len(t.Rows))
	for i, row := range t.Rows {
		list[i] = row.ACL
	}
	return acl.NewTable(list, compileGlob)
}

// compileGlob is glob.Compile for patterns of users' keys.
func compileGlob(pattern string) (match func(key []byte) bool, problem string) {
	g, ok := glob.Compile([]byte(pattern), false)
	if !ok {
		return nil, strings.TrimPrefix(fmt.Sprintf(argument.ErrPatternLong, glob.MaxWild), "ERR ")
	}
	return g.Match, ""
}

// Each calls key transaction for each row, with its subcommands behind it.
func (t *Table) Each(visit func(*Row)) {
	for _, row := range t.Rows {
		visit(row)
		for _, sub := range row.Sub {
			visit(sub)
		}
	}
}

// Remove makes a name unknown to Find.
func (t *Table) Remove(name string) { delete(t.byName, name) }

// Find looks up a name in any case, without allocating.
func (t *Table) Find(name []byte) *Row {
	if len(name) > maxName {
		return nil
	}
	var lower [maxName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t.byName[string(lower[:len(name)])]
}

// FindFull looks up "client|id" as well as "client".
func (t *Table) FindFull(name []byte) *Row {
	parent, sub, isSub := bytes.Cut(name, []byte{'|'})
	row := t.Find(parent)
	if row == nil || !isSub {
		return row
	}
	return row.FindSub(sub)
}

// FindCall returns the row of a call: that of the subcommand where args[0] is a container that has it, and nil where it has not.
func (t *Table) FindCall(args [][]byte) *Row {
	row := t.Find(args[0])
	if row != nil && len(row.Sub) > 0 && len(args) > 1 {
		row = row.FindSub(args[1])
	}
	return row
}

// Unknown is Redis's error for a name without a row. The start of the arguments helps to find the caller.
func Unknown(args [][]byte) string {
	var shown strings.Builder
	for _, arg := range args[1:] {
		room := 128 - shown.Len()
		if room <= 0 {
			break
		}
		fmt.Fprintf(&shown, "'%s' ", arg[:min(len(arg), room)])
	}
	return fmt.Sprintf(errUnknownCommand, args[0], shown.String())
}

// help answers X HELP by the rows of X's subcommands.
func (c *Call) help(row *Row) {
	lines := []string{strings.ToUpper(row.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range row.Sub {
		lines = append(lines, usage(sub)...)
	}
	c.statuses(lines)
}

// Help answers with the usage and the summary of a command that has no subcommands.
func (c *Call) Help() { c.statuses(usage(c.Row)) }

func usage(row *Row) []string {
	return []string{strings.TrimSpace(strings.ToUpper(row.Name) + " " + row.Usage), "    " + row.Summary}
}

func (c *Call) statuses(lines []string) {
	c.Array(len(lines))
	for _, line := range lines {
		c.Status(line)
	}
}
