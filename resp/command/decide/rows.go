package decide

import (
	"cmp"
	"slices"

	"celld/cell"
	"celld/cell/lease"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
)

// reader reads a call into a shape, which is empty. It returns the text of an error, or "".
type reader func(l *limits, f *Shape, args [][]byte) (text string)

// batched are the readers of the rows whose calls are gathered in batches of many.
var batched = map[string]reader{"cl.throttle": readThrottle, "cl.take": readTake,
	"incr": readIncr, "decr": readDecr, "incrby": readIncrBy, "decrby": readDecrBy, "increx": readIncrEx}

const adds = spec.Write | spec.DenyOOM | spec.Fast | spec.Decides

// Rows are the commands of the family, for calls whose host is a Host.
func Rows() []*command.Row {
	ask := func(read reader) func(*command.Call) {
		return func(c *command.Call) { of(c).decideOne(c, read) }
	}
	return []*command.Row{
		{Name: "cl.throttle", Arity: -1, Flags: spec.Write | spec.DenyOOM | spec.Module | spec.Fast | spec.Decides, Keys: spec.OneKey,
			Group: spec.GroupLimit, Usage: "key max_burst count period [quantity]",
			Summary: "Takes from a key's limit if there is enough, and says whether there was.", Run: ask(readThrottle)},
		{Name: "cl.take", Arity: -3, Flags: spec.Write | spec.DenyOOM | spec.Fast | spec.Blocking | spec.Decides, Keys: spec.OneKey,
			Group:   spec.GroupLimit,
			Usage:   "key limit ... [COST n [OF name]] ... [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US] [FULL] [NAMED]",
			Summary: "Takes from all given limits of a key, or from none.", Cost: "O(N) where N is the number of limits",
			Run: ask(readTake)},
		{Name: "cl.mtake", Arity: -4, Flags: spec.Write | spec.DenyOOM | spec.Fast | spec.Blocking | spec.Decides, Keys: spec.CountedPairs,
			Group:   spec.GroupLimit,
			Usage:   "n key limit [key limit] ... [COST n [OF name]] ... [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US] [NAMED]",
			Summary: "Takes from the limits of several keys at the same instant, or from none.",
			Cost:    "O(N) where N is the number of pairs", Run: ask(readMultiTake)},
		{Name: "cl.explain", Arity: -3, Flags: spec.Readonly | spec.Fast | spec.Decides, Keys: spec.OneKey, Group: spec.GroupLimit,
			Usage:   "key limit ... [COST n [OF name]] ...",
			Summary: "Says in a sentence why a CL.TAKE would pass now, or be denied, and takes nothing.",
			Cost:    "O(N) where N is the number of limits", Run: func(c *command.Call) { of(c).explain(c) }},
		{Name: "incr", Arity: 2, Flags: adds, Keys: spec.OneKey, Access: spec.Updates, Since: "1.0.0", Group: "string", Usage: "key",
			Summary: "Adds 1 to the integer of a key, which begins at 0.", Run: ask(readIncr)},
		{Name: "decr", Arity: 2, Flags: adds, Keys: spec.OneKey, Access: spec.Updates, Since: "1.0.0", Group: "string", Usage: "key",
			Summary: "Subtracts 1 from the integer of a key, which begins at 0.", Run: ask(readDecr)},
		{Name: "incrby", Arity: 3, Flags: adds, Keys: spec.OneKey, Access: spec.Updates, Since: "1.0.0", Group: "string",
			Usage: "key increment", Summary: "Adds to the integer of a key, which begins at 0.", Run: ask(readIncrBy)},
		{Name: "decrby", Arity: 3, Flags: adds, Keys: spec.OneKey, Access: spec.Updates, Since: "1.0.0", Group: "string",
			Usage: "key decrement", Summary: "Subtracts from the integer of a key, which begins at 0.", Run: ask(readDecrBy)},
		{Name: "increx", Arity: -2, Flags: adds, Keys: spec.OneKey, Access: spec.Updates, Since: "8.8.0", Group: "string",
			Usage: "key [NX|XX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] [ENX] " +
				"[BYINT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE]",
			Summary: "Adds to the integer of a key within bounds, and sets when the key expires.", Run: ask(readIncrEx)},
		{Name: "cl.give", Arity: -4, Flags: spec.Write | spec.Fast | spec.Decides, Keys: spec.OneKey, Group: spec.GroupLimit,
			Usage: "key limit n [OF name]", Summary: "Gives back what was taken from a limit.",
			Run: func(c *command.Call) { of(c).give(c) }},
	}
}

func of(c *command.Call) *Decider { return c.Host.(Host).Decider() }

// decideOne is the handler of a call that is not gathered.
func (d *Decider) decideOne(c *command.Call, read reader) {
	f := &d.single
	f.reset(c.Row)
	if text := read(&d.limits, f, c.Args); text != "" {
		c.Error("%s", text)
		return
	}
	c.Host.(Host).Decide(c, f)
}

var giveWords = argument.Options{Valued: []string{"OF"}}

// give is CL.GIVE key limit n [OF name]. It gives back at most what was taken, and answers how much that was.
func (d *Decider) give(c *command.Call) {
	f := &d.single
	f.reset(c.Row)
	text := f.readLimit(&d.limits, c.Args[2], 0)
	n, ok := argument.ParseInt(c.Args[3])
	if text == "" && !ok {
		text = argument.ErrNotInteger
	}
	if text == "" {
		text = cmp.Or(f.put("GIVE", n, ""), giveWords.Read(c.Args[4:], f.set), f.share())
	}
	switch {
	case text != "":
		c.Error("%s", text)
	case slices.ContainsFunc(f.limits, func(l limit) bool { return l.HoldsLeases() }) && d.Store.InProcess():
		giveInSteps(c, slices.Clone(f.limits), n)
	default:
		if f.reply = replyGiven; n == 0 {
			f.Mode = cell.Peek
		}
		c.Host.(Host).Decide(c, f)
	}
}

// giveInSteps ends leases of limits, of which there may be 65,536. It answers the most that any limit took back.
func giveInSteps(c *command.Call, limits []limit, n int64) {
	given, most := int64(0), int64(0)
	c.InSteps(func(c *command.Call) (more bool) {
		l := limits[0]
		some, more, err := c.Keys().GiveSome(c.Args[1], l.Limit, l.policy, n-given, c.Access())
		c.Did(int(min(some, lease.MostGiven)), 0)
		given += some
		if most = max(most, given); err != nil {
			c.Fail(err)
			return false
		}
		if !more {
			limits, given = limits[1:], 0
		}
		if len(limits) == 0 {
			c.Int(most)
		}
		return len(limits) > 0
	})
}
