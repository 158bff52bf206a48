package decide

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
)

// options are those of a CL.TAKE or CL.MTAKE.
type options struct {
	store.TakeOptions
	unitNS uint64 // of times in the reply: ms or µs
	full   bool   // the reply also has each limit's decision
	named  bool   // the reply has names

	terms store.Terms
	max   int64 // of WAIT or RESERVE, as it was given

	costs    []store.NamedCost // as they were given: a COST without OF has no name
	last     string            // of the options
	gives    bool              // it is a CL.GIVE
	hasTerms bool              // it may wait or hold a lease
	leases   bool              // the reply has the lease's id
}

// words are the options of CL.TAKE and CL.MTAKE.
var words = argument.Options{
	Flags:  []string{"PEEK", "UPTO", "FORCE", "BIND", "US", "FULL", "NAMED"},
	Valued: []string{"COST", "OF", "WAIT", "RESERVE", "LEASE", "ID"},
	Often:  []string{"COST", "OF"},
	OneOf:  [][]string{{"PEEK", "UPTO", "FORCE", "RESERVE", "WAIT"}}, Clash: errTakeModes,
}

// textual are the options whose value is no number.
var textual = []string{"ID", "OF"}

// modes are the options of which a call has one at most.
var modes = map[string]struct {
	mode cell.Mode
	upTo bool
	wait store.WaitMode
}{
	"PEEK": {mode: cell.Peek}, "UPTO": {upTo: true}, "FORCE": {mode: cell.Force}, "RESERVE": {wait: store.Reserve},
	"WAIT": {wait: store.Wait},
}

// set notes an option. It returns the text of an error, or "".
func (o *options) set(option string, value []byte) (text string) {
	n, isInt := argument.ParseInt(value)
	if !isInt && !slices.Contains(textual, option) && slices.Contains(words.Valued, option) {
		unit := ""
		if option == "WAIT" || option == "RESERVE" || option == "LEASE" {
			unit = " of ms"
		}
		return fmt.Sprintf(errWhole, option, unit, argument.ShortText(value))
	}
	return o.put(option, n, string(value))
}

// put is set for a value that is read: a number, or a text.
func (o *options) put(option string, n int64, value string) (text string) {
	last := o.last
	switch o.last = option; option {
	case "BIND":
		o.terms.Bound = true
	case "US":
		o.unitNS = 1_000
	case "FULL":
		o.full = true
	case "NAMED":
		o.named = true
	case "ID":
		if len(value) < 1 || len(value) > maxLeaseName {
			return fmt.Sprintf(errLeaseName, maxLeaseName)
		}
		o.terms.Name = value
	case "COST":
		if n < 0 || n > cell.MaxCost {
			return errCost
		}
		if len(o.costs) > store.MaxLimits {
			return fmt.Sprintf(argument.ErrManyCosts, store.MaxLimits)
		}
		o.costs = append(o.costs, store.NamedCost{N: n})
	case "OF":
		if len(o.costs) == 0 || last != "COST" && last != "GIVE" {
			return errOf
		}
		o.costs[len(o.costs)-1].Name, text = argument.ParseName([]byte(value))
		return text
	case "GIVE":
		if n < 0 {
			return errGive
		}
		o.costs, o.gives = append(o.costs, store.NamedCost{N: -n}), true
	case "LEASE":
		if n < 1 || n > argument.MaxLeaseMS {
			return fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS)
		}
		o.terms.LeaseNS = n * 1e6
	default:
		m := modes[option]
		o.Mode, o.UpTo, o.terms.Mode, o.max = m.mode, m.upTo, m.wait, n
	}
	return ""
}

// share gives the limits their costs. A CL.GIVE of a name has no other limits then.
func (f *Shape) share() (text string) {
	for i, c := range f.costs {
		twice := slices.ContainsFunc(f.costs[:i], func(o store.NamedCost) bool { return o.Name == c.Name })
		switch unnamed := c.Name == (cell.Name{}); {
		case twice && unnamed:
			return fmt.Sprintf(argument.ErrOptionTwice, "COST")
		case twice:
			return fmt.Sprintf(argument.ErrOptionTwice, "COST n OF "+c.Name.String())
		case unnamed:
			f.Cost = c.N
			continue
		case !slices.ContainsFunc(f.limits, func(l limit) bool { return l.Name == c.Name }):
			return f.notNamed(c.Name)
		case f.gives:
			f.Cost = c.N
			f.limits = slices.DeleteFunc(f.limits, func(l limit) bool { return l.Name != c.Name })
			continue
		}
		for i := range f.limits {
			if l := &f.limits[i]; l.Name == c.Name {
				l.own, l.cost = true, c.N
			}
		}
	}
	return ""
}

// notNamed says which names there are.
func (f *Shape) notNamed(name cell.Name) (text string) {
	var names []string
	for _, l := range f.limits {
		if l.Name != (cell.Name{}) && !slices.Contains(names, l.Name.String()) {
			names = append(names, l.Name.String())
		}
	}
	if names == nil {
		return fmt.Sprintf(errNoneNamed, name)
	}
	return fmt.Sprintf(errNamed, name, strings.Join(names, ", "))
}

// takes reports a call that is to take from one limit at least.
func (f *Shape) takes() bool {
	return f.Cost > 0 || slices.ContainsFunc(f.costs, func(c store.NamedCost) bool { return c.N > 0 })
}

// readOptions reads the options of a shape that has its limits, and checks them together.
func (f *Shape) readOptions(l *limits, args [][]byte) (text string) {
	f.begin()
	if text = words.Read(args, f.set); text != "" {
		return text
	}
	return f.check(l)
}

// begin is a call without options.
func (f *Shape) begin() { f.Cost, f.unitNS, f.counted = 1, 1_000_000, decisions.TakeAllowed }

// check checks options together.
func (f *Shape) check(l *limits) (text string) {
	if text = f.share(); text != "" {
		return text
	}
	conc := slices.ContainsFunc(f.limits, func(l limit) bool { return l.HoldsLeases() })
	bookable := !slices.ContainsFunc(f.limits, func(l limit) bool { return !l.Bookable() })
	terms := &f.terms
	f.leases = conc || terms.LeaseNS > 0
	unitNS, mostMS := int64(f.unitNS), l.WaitMax.Get()
	switch {
	case f.UpTo && slices.ContainsFunc(f.limits, func(l limit) bool { return l.own }):
		return errUpToOf
	case !f.leases && (terms.Bound || terms.Name != ""):
		return errNoLease
	case terms.Mode == store.Reserve && !bookable:
		return fmt.Sprintf(errReserve, cell.AlgoNames(func(a cell.Algo) bool { return !a.Bookable() }))
	case f.max < 0 || f.max > mostMS*(1e6/unitNS):
		return fmt.Sprintf(ErrWaitMax, mostMS)
	}
	terms.MaxNS = f.max * unitNS
	if f.Cost >= 0 && !f.takes() {
		f.Mode, f.UpTo = cell.Peek, false
	}
	if f.Mode == cell.Peek {
		*terms = store.Terms{}
		return ""
	}
	f.hasTerms = f.leases || terms.Mode != store.DontWait
	return ""
}

// maxLeaseName is the longest name of a lease, in bytes.
const maxLeaseName = 64

// readTake reads CL.TAKE key limit ... [options].
func readTake(l *limits, f *Shape, args [][]byte) (text string) {
	rest, text := f.readLimits(l, args[2:])
	if text != "" {
		return text
	}
	f.reply = replyTaken
	if text = f.readOptions(l, rest); f.named {
		f.reply = nameTaken
	}
	return text
}

// readLimits reads the limits of a key, of which there is one at least, and returns what follows them.
func (f *Shape) readLimits(l *limits, args [][]byte) (rest [][]byte, text string) {
	rest = args
	for first := true; len(rest) > 0 && (first || argument.IsLimit(rest[0])); first, rest = false, rest[1:] {
		if text = f.readLimit(l, rest[0], 0); text != "" {
			return nil, text
		}
	}
	return rest, ""
}

// readMultiTake reads CL.MTAKE n key limit [key limit ...] [options]. It takes from all keys at one instant, or from none.
func readMultiTake(l *limits, f *Shape, args [][]byte) (text string) {
	pairs, ok := argument.ParseInt(args[1])
	switch {
	case !ok:
		return errNoPairs
	case pairs < 1 || pairs > store.MaxLimits:
		return fmt.Sprintf(errPairs, store.MaxLimits)
	case int64(len(args)-2) < 2*pairs:
		return errPairsMissing
	}
	for i := range int(pairs) {
		if text = f.readLimit(l, args[2+2*i+1], i); text != "" {
			return text
		}
	}
	f.reply = replyMultiTaken
	if text = f.readOptions(l, args[2+2*pairs:]); text == "" && f.full {
		text = errFull
	}
	if f.named {
		f.reply = nameMultiTaken
	}
	return text
}

// replyTaken answers with an array in RESP3 as well. ioredis and go-redis turn a map into a value that callers would take for
// "limited".
func replyTaken(out *command.Reply, f *Shape, r *store.TakeRequest) {
	taken, unitNS := &r.Taken, f.unitNS
	binding := &r.Calls[taken.Binding].Decision
	head := "*7\r\n"
	switch {
	case f.full && f.leases:
		head = "*9\r\n"
	case f.full || f.leases:
		head = "*8\r\n"
	}
	o := wire.AppendBool(append(out.Out, head...), taken.Limited, false)
	o = wire.AppendInt(o, binding.Limit)
	o = wire.AppendInt(o, binding.Remaining)
	o = wire.AppendInt(o, wait(taken.RetryAfterNS, unitNS))
	o = wire.AppendInt(o, wait(taken.ResetAfterNS, unitNS))
	out.Out = wire.AppendInt(o, taken.Granted)
	replyTerms(out, f, r)
	if f.full {
		out.Array(len(r.Calls))
		replyDecisions(out, f, r)
	}
}

func replyMultiTaken(out *command.Reply, f *Shape, r *store.TakeRequest) {
	taken, fields := &r.Taken, 5
	if f.leases {
		fields = 6
	}
	out.Array(1 + len(r.Calls))
	out.Array(fields)
	out.Bool(taken.Limited)
	out.Int(boundIndex(taken))
	out.Int(taken.Granted)
	out.Int(wait(taken.RetryAfterNS, f.unitNS))
	replyTerms(out, f, r)
	replyDecisions(out, f, r)
}

// boundIndex is which limit has denied the call, from 1 on; 0: it was granted.
func boundIndex(taken *store.Taken) int64 {
	if !taken.Limited {
		return 0
	}
	return int64(taken.Binding) + 1
}

func replyGiven(out *command.Reply, _ *Shape, r *store.TakeRequest) { out.Int(-r.Taken.Granted) }

// replyTerms answers how long to wait, and with the id of the lease or 0 where there may be one.
func replyTerms(out *command.Reply, f *Shape, r *store.TakeRequest) {
	if r.Terms == nil && !f.leases { // the usual case
		out.Out = append(out.Out, ":0\r\n"...)
		return
	}
	left, lease := leftAndLease(f, r)
	out.Int(left)
	if f.leases {
		out.Int(lease)
	}
}

// leftAndLease are how long to wait, and the id of the lease or 0.
func leftAndLease(f *Shape, r *store.TakeRequest) (left, lease int64) {
	if t := r.Terms; t != nil {
		left, lease = wait(t.WaitNS, f.unitNS), t.Lease
	}
	return left, lease
}

// replyDecisions answers with the decision of each limit.
func replyDecisions(out *command.Reply, f *Shape, r *store.TakeRequest) {
	for i := range r.Calls {
		replyDecision(out, &r.Calls[i].Decision, f.unitNS)
	}
}

// replyDecision answers with one limit's decision, with times in units of unitNS.
func replyDecision(out *command.Reply, d *cell.Decision, unitNS uint64) {
	out.Array(5)
	out.Bool(d.Limited)
	out.Int(d.Limit)
	out.Int(d.Remaining)
	out.Int(wait(d.RetryAfterNS, unitNS))
	out.Int(wait(d.ResetAfterNS, unitNS))
}

// wait rounds up, so that a caller who waits this long has waited enough. It is -1 for never.
func wait(ns, unitNS uint64) int64 {
	if ns == cell.Never {
		return -1
	}
	n := ns / unitNS
	if ns%unitNS > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}
