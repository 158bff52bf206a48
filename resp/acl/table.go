package acl

import "strings"

// Command is a command or subcommand as rules see it.
type Command struct {
	Name       string // in lower case; of a subcommand with its container: client|id
	Categories Category
	Public     bool       // everybody may run it, as AUTH and HELLO: no rule takes that away
	Subs       []*Command // of a container

	id     int
	parent *Command
}

// Table is all commands that rules can name.
type Table struct {
	commands []*Command // by id, and each before its subcommands
	byName   map[string]*Command
	compile  compiler
}

// compiler returns what says whether a key matches a pattern, or the text of an error. Any goroutine may call what it returns.
type compiler func(pattern string) (match func(key []byte) bool, problem string)

// NewTable returns a table of commands and their Subs. It sets their ids, so a Command belongs to one table.
func NewTable(commands []*Command, compile compiler) *Table {
	t := &Table{byName: map[string]*Command{}, compile: compile}
	t.add(commands, nil)
	return t
}

func (t *Table) add(commands []*Command, parent *Command) {
	for _, c := range commands {
		c.id, c.parent = len(t.commands), parent
		t.commands = append(t.commands, c)
		t.byName[c.Name] = c
		t.add(c.Subs, c)
	}
}

// find returns a command by its full name in any case, or nil.
func (t *Table) find(name string) *Command { return t.byName[lower(name)] }

// In returns the full names of the commands of a category.
func (t *Table) In(category Category) (names []string) {
	for _, c := range t.commands {
		if c.Categories&category != 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// hasSpaces reports what would break a line of rules, or end it.
func hasSpaces(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }
