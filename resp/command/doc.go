// Package command holds the two parts of a command: its row in the table, and the call that its handler gets.
//
//	func Rows() []*command.Row {
//		return []*command.Row{
//			{Name: "exists", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key",
//				Summary: "Says whether a key exists.", Since: "1.0.0", Group: "generic", Run: exists},
//		}
//	}
//
//	func exists(c *command.Call) {
//		_, ok := c.Keys().Get(c.Args[1], c.Access())
//		c.Bool(ok)
//	}
//
// # The rooms
//
//	family   keys, limit, decide, connection, users, admin, describe: rows and handlers
//	   │
//	command  Row, Table, Call, Reply; Check of a user's rights
//	   │
//	spec     the words of rows: flags, ranges of keys
//	   │
//	argument integers, options, limits
//
// # How a family is written
//
// A family of commands is a package below this one. It knows Call, and neither another family nor the session or the server. Its
// function Rows returns its rows. Its parameters, small interfaces or owners, give the rows what they need of the server besides the Call:
//
//	keys.Rows(keys.Options{Space: space}) // what reaches all keys, where an engine has them
//	limit.Rows(server)                    // the owners that its handlers ask and change
//	decide.Rows()                         // its calls have a decide.Host, which asks the limiter
//
// The server is given the rows of all families in one list. COMMAND, COMMAND DOCS, HELP, arity errors, users' rights, MULTI and the
// journal derive from a row, so a command is a row and a handler.
//
//   - A handler appends exactly one reply to its Call. Array headers are written when their elements are certain.
//   - Args lie in the buffer of the connection, and a Call is used again for the next command. Code that runs later (a step,
//     an effect, an answer) gets the Call anew and reads its Args; a closure keeps neither.
//   - A handler that takes longer than a millisecond works in steps (InSteps) or hands its work to a goroutine (Offload).
//   - A handler that asks an engine about more than the keys of its call waits for the answer (Later), and its row is Overall.
//   - A handler runs again where an engine's keys have changed meanwhile. Effects that others can see go through Once.
//   - Options are declared as argument.Options, with those that exclude each other. Read answers a wrong one with a text that names the
//     word, or with Redis's own.
//   - A handler about its client's connection gets that as a second parameter, by OnConnection.
//   - A long list that only reads is written by List.
//   - Tests run a family's rows by package calltest, on a store in memory.
//   - Texts of errors are in the family's errors.go, Redis's where Redis has one. Those about arguments are in package argument.
package command
