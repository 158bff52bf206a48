package limit

import (
	"fmt"

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
	N       int64 // CL.RENEW: so many ms from now on; CL.SETTLE: the true cost of what the lease holds
}

// Check is the text of what is wrong with its values, or "".
func (l *LeaseChange) Check() (text string) {
	switch {
	case l.Command == "cl.renew" && (l.N < 1 || l.N > argument.MaxLeaseMS):
		return fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS)
	case l.Command == "cl.settle" && (l.N < 0 || l.N > cell.MaxCost):
		return errSettle
	}
	return ""
}

// Make changes the lease. It returns false where there is none.
func (l *LeaseChange) Make(keys store.Keys, a store.Access) (did bool, err error) {
	switch l.Command {
	case "cl.renew":
		return keys.Renew(l.Key, l.ID, l.N*1e6, a)
	case "cl.settle":
		return keys.Settle(l.Key, l.ID, l.N, a)
	}
	return keys.Release(l.Key, l.ID, a)
}

// endOfLease is how much work the end of a lease may be: that of a long log takes 3 ms.
const endOfLease = 64

// changeLease answers 1, or 0 where there is no such lease.
func changeLease(c *command.Call) {
	l := LeaseChange{Command: c.Row.Name, Key: c.Args[1]}
	for i, n := range []*int64{&l.ID, &l.N}[:len(c.Args)-2] {
		var isInt bool
		if *n, isInt = argument.ParseInt(c.Args[2+i]); !isInt {
			c.Error(argument.ErrNotInteger)
			return
		}
	}
	if text := l.Check(); text != "" {
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
