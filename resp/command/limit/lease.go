package limit

import (
	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
)

// renew is CL.RENEW key id ms. It answers 1, or 0 where there is no such lease.
func renew(c *command.Call) {
	id, ok := argument.ParseInt(c.Args[2])
	ms, isInt := argument.ParseInt(c.Args[3])
	switch {
	case !ok || !isInt:
		c.Error(argument.ErrNotInteger)
		return
	case ms < 1 || ms > argument.MaxLeaseMS:
		c.Error(argument.ErrLease, argument.MaxLeaseMS)
		return
	}
	renewed, err := c.Keys().Renew(c.Args[1], id, ms*1e6, c.Access())
	if err != nil {
		c.Fail(err)
		return
	}
	if renewed {
		c.LeaseEnds(id, c.NowNS+ms*1e6)
	}
	c.Bool(renewed)
}

// endOfLease is how much work the end of a lease may be: that of a long log takes 3 ms.
const endOfLease = 64

// release is CL.RELEASE key id. It answers 1, or 0 where there is no such lease.
func release(c *command.Call) {
	id, ok := argument.ParseInt(c.Args[2])
	if !ok {
		c.Error(argument.ErrNotInteger)
		return
	}
	c.Did(endOfLease, 0)
	released, err := c.Keys().Release(c.Args[1], id, c.Access())
	ended(c, id, released, err)
}

// settle is CL.SETTLE key id n: the true cost of what the lease holds was n. It answers 1, or 0 where there is no such lease.
func settle(c *command.Call) {
	id, ok := argument.ParseInt(c.Args[2])
	n, isInt := argument.ParseInt(c.Args[3])
	switch {
	case !ok || !isInt:
		c.Error(argument.ErrNotInteger)
		return
	case n < 0 || n > cell.MaxCost:
		c.Error(errSettle)
		return
	}
	c.Did(endOfLease, 0)
	settled, err := c.Keys().Settle(c.Args[1], id, n, c.Access())
	ended(c, id, settled, err)
}

// ended answers whether a lease was ended.
func ended(c *command.Call, id int64, was bool, err error) {
	if err != nil {
		c.Fail(err)
		return
	}
	if was {
		host := c.Host
		c.Once(func() { host.LeaseEnds(id, 0) })
	}
	c.Bool(was)
}
