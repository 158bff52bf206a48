// Package describe is COMMAND and its subcommands, which describe the command table: redis-cli's hints and clients' knowledge of which
// arguments are keys come from it.
//
//	row := describe.Row(func() *command.Table { return table })
package describe
