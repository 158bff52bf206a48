package limit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
)

// LeaseChange is CL.RENEW, CL.RELEASE or CL.SETTLE by its values.
type LeaseChange struct {
	Command string // in lower case
	Key     []byte
	ID      int64
	N       int64 // CL.RENEW: so many ms from now on; CL.SETTLE: the true cost of what the lease holds, or store.Kept

	Of []store.NamedCost // CL.SETTLE: of limits with a name
}

// Check is the text of what is wrong with its values, or "".
func (l *LeaseChange) Check() (text string) {
	switch {
	case l.Command == "cl.renew" && (l.N < 1 || l.N > argument.MaxLeaseMS):
		return fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS)
	case l.Command == "cl.settle" && !(l.N == store.Kept && l.Of != nil) && !isCost(l.N):
		return errSettle
	}
	for i, c := range l.Of {
		switch {
		case i == store.MaxLimits:
			return fmt.Sprintf(argument.ErrManyCosts, store.MaxLimits)
		case !isCost(c.N):
			return errSettle
		case slices.ContainsFunc(l.Of[:i], func(o store.NamedCost) bool { return o.Name == c.Name }):
			return fmt.Sprintf(argument.ErrOptionTwice, "OF "+c.Name.String())
		}
	}
	return ""
}

// Words are what follows the key in the command.
func (l *LeaseChange) Words() (words []string) {
	add := func(n int64, more ...string) { words = append(append(words, strconv.FormatInt(n, 10)), more...) }
	add(l.ID)
	if l.Command != "cl.release" && l.N != store.Kept {
		add(l.N)
	}
	for _, c := range l.Of {
		add(c.N, "OF", c.Name.String())
	}
	return words
}

func isCost(n int64) bool { return 0 <= n && n <= cell.MaxCost }

// read reads what follows the key: an ID, and for CL.SETTLE n once and n OF name for each name, in any order.
func (l *LeaseChange) read(args [][]byte) (text string) {
	numbers := []*int64{&l.ID, &l.N}
	for len(args) > 0 {
		n, isInt := argument.ParseInt(args[0])
		switch named := len(args) > 2 && strings.EqualFold(string(args[1]), "OF") && len(numbers) < 2; {
		case !isInt:
			return argument.ErrNotInteger
		case named:
			name, problem := argument.ParseName(args[2])
			switch {
			case problem != "":
				return problem
			case len(l.Of) == store.MaxLimits:
				return fmt.Sprintf(argument.ErrManyCosts, store.MaxLimits)
			}
			l.Of, args = append(l.Of, store.NamedCost{Name: name, N: n}), args[3:]
		case len(numbers) == 0:
			return argument.ErrSyntax
		default:
			*numbers[0], numbers, args = n, numbers[1:], args[1:]
		}
	}
	if len(numbers) > 0 && l.Of != nil {
		l.N = store.Kept
	}
	return ""
}

// Make changes the lease. It returns false where there is none.
func (l *LeaseChange) Make(keys store.Keys, a store.Access) (did bool, err error) {
	switch l.Command {
	case "cl.renew":
		return keys.Renew(l.Key, l.ID, l.N*1e6, a)
	case "cl.settle":
		return keys.Settle(l.Key, l.ID, l.N, a, l.Of...)
	}
	return keys.Release(l.Key, l.ID, a)
}

// endOfLease is how much work the end of a lease may be: that of a long log takes 3 ms.
const endOfLease = 64

// changeLease answers 1, or 0 where there is no such lease.
func changeLease(c *command.Call) {
	l := LeaseChange{Command: c.Row.Name, Key: c.Args[1]}
	if text := cmp.Or(l.read(c.Args[2:]), l.Check()); text != "" {
		c.Error("%s", text)
		return
	}
	c.Did(endOfLease, 0)
	did, err := l.Make(c.Keys(), c.Access())
	if err != nil {
		c.Fail(err)
		return
	}
	if did {
		host, endNS := c.Host, int64(0)
		if l.Command == "cl.renew" {
			endNS = c.NowNS + l.N*1e6
		}
		c.Once(func() { host.LeaseEnds(l.ID, endNS) })
	}
	c.Bool(did)
}
