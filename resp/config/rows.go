package config

import (
	"bytes"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/glob"
)

// Commands is the rest that CONFIG needs beside the settings.
type Commands struct {
	Config    *Config
	Secrets   func(c *command.Call) bool // whether the caller may see secrets
	ResetStat func(c *command.Call)
}

// Rows are CONFIG's subcommands.
func Rows(o Commands) []*command.Row {
	return []*command.Row{
		{Name: "get", Arity: -3, Most: spec.ShortList, Flags: spec.NoScript | spec.Admin, Usage: "parameter ...", Summary: "Returns the values of configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: o.get},
		{Name: "set", Arity: -4, Flags: spec.NoScript | spec.Admin | spec.Audited, Usage: "parameter value ...", Summary: "Sets configuration parameters.", Since: "2.0.0", Group: "server", Cost: "O(N) where N is the number of parameters", Run: o.set},
		{Name: "resetstat", Arity: 2, Flags: spec.NoScript | spec.Admin, Summary: "Resets the server's statistics.", Since: "2.0.0", Group: "server", Run: func(c *command.Call) { o.ResetStat(c); c.OK() }},
		{Name: "rewrite", Arity: 2, Flags: spec.NoScript | spec.Admin, Summary: "Returns an error: there is no configuration file.", Since: "2.8.0", Group: "server", Run: func(c *command.Call) { c.Error(errRewrite) }},
	}
}

// get looks for one pattern in a step.
func (o Commands) get(c *command.Call) {
	names := o.Config.names()
	asked, at := map[string]string{}, 2 // by name: how it comes back
	c.InSteps(func(c *command.Call) (more bool) {
		g, ok := glob.Compile(c.Args[at], true)
		if !ok {
			c.Error(argument.ErrPatternLong, glob.MaxWild)
			return false
		}
		for _, name := range names {
			if _, found := asked[name]; found || !g.Match([]byte(name)) {
				continue
			}
			asked[name] = name
			if !bytes.ContainsAny(c.Args[at], "*?[") { // a name without wildcards comes back in the caller's spelling
				asked[name] = string(c.Args[at])
			}
		}
		if at++; at < len(c.Args) {
			return true
		}
		var found [][2]string
		o.Config.View(o.Secrets(c), func(name, value string) {
			if as, ok := asked[name]; ok {
				found = append(found, [2]string{as, value})
			}
		})
		c.Map(len(found))
		c.Pairs(found)
		return false
	})
}

func (o Commands) set(c *command.Call) {
	if len(c.Args)%2 != 0 {
		c.Error(argument.ErrSyntax)
		return
	}
	if err := o.Config.Change(c.Args[2:]); err != nil {
		c.Error("%s", err)
		return
	}
	c.OK()
}
