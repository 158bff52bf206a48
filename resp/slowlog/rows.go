package slowlog

import "celld/resp/command"

// ErrCount is the error of SLOWLOG GET with a count below -1, which is Redis's.
const ErrCount = "ERR count should be greater than or equal to -1"

// Rows are SLOWLOG's subcommands.
func Rows(log *Log) []*command.Row {
	return []*command.Row{
		{Name: "get", Arity: -2, Flags: command.Admin, Usage: "[count]", Summary: "Returns the slow log's entries.", Since: "2.2.12", Group: "server", Cost: "O(N) where N is the number of entries", Run: func(c *command.Call) { get(log, c) }},
		{Name: "len", Arity: 2, Flags: command.Admin, Summary: "Returns the number of entries in the slow log.", Since: "2.2.12", Group: "server", Run: func(c *command.Call) { c.Int(int64(len(log.Last(-1)))) }},
		{Name: "reset", Arity: 2, Flags: command.Admin, Summary: "Clears the slow log.", Since: "2.2.12", Group: "server", Run: func(c *command.Call) { log.Reset(); c.OK() }},
	}
}

func get(log *Log, c *command.Call) {
	count := int64(10)
	if len(c.Args) > 2 {
		n, ok := command.ParseInt(c.Args[2])
		if len(c.Args) > 3 {
			c.Error(command.ErrArity, "slowlog|get")
			return
		}
		if !ok || n < -1 {
			c.Error(ErrCount)
			return
		}
		count = n
	}
	entries := log.Last(count)
	c.Array(len(entries))
	for _, e := range entries {
		c.Array(6)
		c.Int(e.ID)
		c.Int(e.UnixS)
		c.Int(e.US)
		c.Strings(e.Args)
		c.String(e.Addr)
		c.String(e.Name)
	}
}
