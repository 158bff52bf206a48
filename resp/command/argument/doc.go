// Package argument reads the arguments of commands: integers, options and limits. It knows no calls.
//
//	n, ok := argument.ParseInt(c.Args[2])
//	limit, text := argument.ParseLiteral(c.Args[2], logMax)
//
//	var options = argument.Options{Flags: []string{"PEEK", "FORCE"}, Valued: []string{"COST"}, OneOf: [][]string{{"PEEK", "FORCE"}}}
//	text = options.Read(c.Args[3:], func(option string, value []byte) string { … })
//
// A text that is not empty is the error that the client gets. Texts of errors about arguments, which several families give, are in
// errors.go.
package argument
