package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Per is a value for all calls, and others for those under some policies. The zero Per is the zero value for all.
type Per[T any] struct {
	All      T
	policies map[string]T
}

// ParsePer reads a value, followed by those of policies that have another: local,api=allow,@login=deny. As with policies themselves, an @
// before the name is not part of it, and api:cust42 falls back to api. what is what errors call a value, which parse reads.
func ParsePer[T any](text, what string, parse func(word string) (T, error)) (p Per[T], err error) {
	words := strings.Split(text, ",")
	if p.All, err = parse(words[0]); err != nil {
		return Per[T]{}, err
	}
	for _, word := range words[1:] {
		equals := strings.LastIndexByte(word, '=')
		name := strings.TrimPrefix(word[:max(equals, 0)], "@")
		if name == "" || strings.ContainsAny(word, " \t") { // no policy has such a name
			return Per[T]{}, fmt.Errorf("argument must continue with policy=%s, not '%s'", what, word)
		}
		if _, twice := p.policies[name]; twice {
			return Per[T]{}, fmt.Errorf("argument has the policy '%s' twice", name)
		}
		value, err := parse(word[equals+1:])
		if err != nil {
			return Per[T]{}, err
		}
		if p.policies == nil {
			p.policies = make(map[string]T)
		}
		p.policies[name] = value
	}
	return p, nil
}

// String is the text that ParsePer reads as the same, with the policies sorted.
func (p Per[T]) String() string {
	text := fmt.Sprint(p.All)
	for _, name := range slices.Sorted(maps.Keys(p.policies)) {
		text += "," + name + "=" + fmt.Sprint(p.policies[name])
	}
	return text
}

// Of is the value of a policy; "": that of calls under none.
func (p Per[T]) Of(policy string) T {
	for policy != "" {
		if value, ok := p.policies[policy]; ok {
			return value
		}
		policy = policy[:max(strings.LastIndexByte(policy, ':'), 0)]
	}
	return p.All
}

// Alike reports that no policy has a value of its own.
func (p *Per[T]) Alike() bool { return len(p.policies) == 0 }

// Values are all values, in no order.
func (p Per[T]) Values() []T { return append(slices.Collect(maps.Values(p.policies)), p.All) }
