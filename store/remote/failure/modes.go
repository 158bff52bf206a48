package failure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
type Modes struct {
	all      Mode
	policies map[string]Mode
}

// Parse reads error, allow, deny or local, followed by the modes of policies that have another: local,api=allow,@login=deny. As with
// policies themselves, an @ before the name is not part of it, and api:cust42 falls back to api.
func Parse(text string) (Modes, error) {
	words := strings.Split(text, ",")
	var f Modes
	var err error
	if f.all, err = parseMode(words[0]); err != nil {
		return Modes{}, err
	}
	for _, word := range words[1:] {
		equals := strings.LastIndexByte(word, '=')
		name := strings.TrimPrefix(word[:max(equals, 0)], "@")
		if name == "" || strings.ContainsAny(word, " \t") { // no policy has such a name
			return Modes{}, fmt.Errorf("argument must continue with policy=mode, not '%s'", word)
		}
		if _, twice := f.policies[name]; twice {
			return Modes{}, fmt.Errorf("argument has the policy '%s' twice", name)
		}
		mode, err := parseMode(word[equals+1:])
		if err != nil {
			return Modes{}, err
		}
		if f.policies == nil {
			f.policies = make(map[string]Mode)
		}
		f.policies[name] = mode
	}
	return f, nil
}

func parseMode(text string) (Mode, error) {
	if i := slices.Index(modeNames[:], text); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf("argument must be error, allow, deny or local, not '%s'", text)
}

// String is the text that Parse reads as the same, with the policies sorted.
func (f Modes) String() string {
	text := f.all.String()
	for _, name := range slices.Sorted(maps.Keys(f.policies)) {
		text += "," + name + "=" + f.policies[name].String()
	}
	return text
}

// of is the Mode of a policy.
func (f Modes) of(policy string) Mode {
	for policy != "" {
		if mode, ok := f.policies[policy]; ok {
			return mode
		}
		policy = policy[:max(strings.LastIndexByte(policy, ':'), 0)]
	}
	return f.all
}
