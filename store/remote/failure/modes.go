package failure

import (
	"fmt"
	"slices"

	"celld/store/policy"
)

// Mode is what is answered while the engine does not answer.
type Mode uint8

const (
	Error Mode = iota // an error
	Allow             // not limited
	Deny              // limited
	Local             // by a table of this process, with a share of the limit
)

var modeNames = [...]string{Error: "error", Allow: "allow", Deny: "deny", Local: "local"}

func (f Mode) String() string { return modeNames[f] }

// strictness orders Modes: a call of several limits is answered by the strictest.
var strictness = [...]int{Allow: 0, Local: 1, Deny: 2, Error: 3}

// Modes are a Mode for all calls, and others for those under some policies. The zero value is Error for all.
type Modes = policy.Per[Mode]

// Parse reads error, allow, deny or local, followed by the modes of policies that have another: see policy.ParsePer.
func Parse(text string) (Modes, error) { return policy.ParsePer(text, "mode", parseMode) }

func parseMode(text string) (Mode, error) {
	if i := slices.Index(modeNames[:], text); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf("argument must be error, allow, deny or local, not '%s'", text)
}
