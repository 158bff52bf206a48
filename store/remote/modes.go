package remote

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Failure is what is answered while the engine does not answer.
type Failure uint8

const (
	FailError Failure = iota // an error
	FailAllow                // not limited
	FailDeny                 // limited
	FailLocal                // by a table of this process, with a share of the limit
)

var failureNames = [...]string{FailError: "error", FailAllow: "allow", FailDeny: "deny", FailLocal: "local"}

func (f Failure) String() string { return failureNames[f] }

// strictness orders them: of several limits the strictest says how their call is answered.
var strictness = [...]int{FailAllow: 0, FailLocal: 1, FailDeny: 2, FailError: 3}

// Failures are a Failure for all calls, and others for those under some policies. The zero value is FailError for all.
type Failures struct {
	all      Failure
	policies map[string]Failure
}

// ParseFailures reads error, allow, deny or local, and behind it what differs under policies: local,api=allow,@login=deny. As with
// policies themselves, an @ before the name is not part of it, and api:cust42 falls back to api.
func ParseFailures(text string) (Failures, error) {
	words := strings.Split(text, ",")
	var f Failures
	var err error
	if f.all, err = parseFailure(words[0]); err != nil {
		return Failures{}, err
	}
	for _, word := range words[1:] {
		equals := strings.LastIndexByte(word, '=')
		name := strings.TrimPrefix(word[:max(equals, 0)], "@")
		if name == "" || strings.ContainsAny(word, " \t") { // no policy has such a name
			return Failures{}, fmt.Errorf("argument must go on with policy=mode, not '%s'", word)
		}
		if _, twice := f.policies[name]; twice {
			return Failures{}, fmt.Errorf("argument has the policy '%s' twice", name)
		}
		mode, err := parseFailure(word[equals+1:])
		if err != nil {
			return Failures{}, err
		}
		if f.policies == nil {
			f.policies = make(map[string]Failure)
		}
		f.policies[name] = mode
	}
	return f, nil
}

func parseFailure(text string) (Failure, error) {
	if i := slices.Index(failureNames[:], text); i >= 0 {
		return Failure(i), nil
	}
	return 0, fmt.Errorf("argument must be error, allow, deny or local, not '%s'", text)
}

// String is the text that ParseFailures reads as the same, with the policies sorted.
func (f Failures) String() string {
	text := f.all.String()
	for _, name := range slices.Sorted(maps.Keys(f.policies)) {
		text += "," + name + "=" + f.policies[name].String()
	}
	return text
}

// of is that of a policy.
func (f Failures) of(policy string) Failure {
	for policy != "" {
		if mode, ok := f.policies[policy]; ok {
			return mode
		}
		policy = policy[:max(strings.LastIndexByte(policy, ':'), 0)]
	}
	return f.all
}
