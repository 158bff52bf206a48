package spec

import "celld/resp/command/argument"

// KeyRange says which arguments are keys: the first, the last (negative: from the end) and the step (0: there are none). With
// Counted, the argument before the first says how many follow.
type KeyRange struct {
	First, Last, Step int
	Counted           bool
}

// The usual ranges of keys.
var (
	OneKey       = KeyRange{First: 1, Last: 1, Step: 1}
	TwoKeys      = KeyRange{First: 1, Last: 2, Step: 1}
	AllKeys      = KeyRange{First: 1, Last: -1, Step: 1}
	SubKey       = KeyRange{First: 2, Last: 2, Step: 1} // of a subcommand
	CountedPairs = KeyRange{First: 2, Last: -1, Step: 2, Counted: true}
	ScriptKeys   = KeyRange{First: 3, Last: -1, Step: 1, Counted: true}
)

// Bounds returns where the first and the last key are, which are Step apart. Without a key, last is below first.
func (k KeyRange) Bounds(args [][]byte) (first, last int) {
	if k.Step == 0 {
		return 0, -1
	}
	last = k.Last
	if last < 0 {
		last += len(args)
	}
	if k.Counted {
		n, ok := argument.ParseInt(args[k.First-1])
		if !ok || n < 1 || n > int64((len(args)-k.First)/k.Step) {
			return 0, -1
		}
		last = k.First + (int(n)-1)*k.Step
	}
	return k.First, min(last, len(args)-1)
}
