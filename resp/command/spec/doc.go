// Package spec is the words that rows of the command table are written in: flags, which arguments are keys, and what the command does
// with these. It knows no calls.
//
//	{Name: "get", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Access: spec.ByFlags, …}
package spec
