package decide

import (
	"fmt"
	"math"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/store"
)

func readIncr(_ *limits, f *Shape, args [][]byte) (text string) { return f.readCount(args, 2, 1) }
func readDecr(_ *limits, f *Shape, args [][]byte) (text string) { return f.readCount(args, 2, -1) }

func readIncrBy(_ *limits, f *Shape, args [][]byte) (text string) { return f.readCount(args, 3, 1) }
func readDecrBy(_ *limits, f *Shape, args [][]byte) (text string) { return f.readCount(args, 3, -1) }

// readCount reads INCR or DECR key, or INCRBY or DECRBY key n. sign is that of the number.
func (f *Shape) readCount(args [][]byte, words int, sign int64) (text string) {
	n, ok := int64(1), true
	switch {
	case len(args) != words: // of a call that stands alone the arity is known to be right
		return argument.ErrSyntax
	case words == 3:
		n, ok = argument.ParseInt(args[2])
	}
	switch {
	case !ok:
		return argument.ErrNotInteger
	case n == math.MinInt64 && sign < 0:
		return errDecrement
	}
	f.counts = true
	f.count.Counter = cell.Unbounded(sign * n)
	f.count.Strict = true
	return ""
}

var incrExWords = argument.Options{Flags: []string{"NX", "XX", "PERSIST", "ENX", "SATURATE"},
	Valued:  []string{"EX", "PX", "EXAT", "PXAT", "BYINT", "BYFLOAT", "LBOUND", "UBOUND"},
	OneOf:   [][]string{{"NX", "XX"}, {"PERSIST", "EX", "PX", "EXAT", "PXAT"}, {"PERSIST", "ENX"}, {"BYINT", "BYFLOAT"}},
	Refusal: argument.ErrSyntax, Once: true}

// incrEx is what follows INCREX key, as far as it must be read whole before it makes sense.
type incrEx struct {
	count                        *store.Count
	expiry                       argument.Expiry
	byInt, byFloat, lower, upper []byte
}

func (o *incrEx) set(option string, value []byte) (text string) {
	switch c := o.count; option {
	case "NX":
		c.Only = store.IfAbsent
	case "XX":
		c.Only = store.IfPresent
	case "PERSIST":
		c.Expire = store.NeverExpire
	case "ENX":
		c.IfNone = true
	case "SATURATE":
		c.Saturate = true
	case "BYINT":
		o.byInt = value
	case "BYFLOAT":
		o.byFloat = value
	case "LBOUND":
		o.lower = value
	case "UBOUND":
		o.upper = value
	default:
		o.expiry = argument.Expiry{Unit: option, Value: value}
	}
	return ""
}

// readIncrEx reads INCREX key [option ...]. Its checks, their order and their errors are those of Redis 8.8, and of Valkey 9.2 for NX and
// XX.
func readIncrEx(_ *limits, f *Shape, args [][]byte) (text string) {
	f.counts, f.pair = true, true
	f.count.Counter = cell.Unbounded(1)
	o := incrEx{count: &f.count}
	if text = incrExWords.Read(args[2:], o.set); text != "" {
		return text
	}
	switch {
	case f.count.IfNone && o.expiry.Unit == "":
		return errENX
	case o.byFloat != nil:
		return errByFloat
	}
	for _, number := range []struct {
		name string
		text []byte
		to   *int64
	}{{"Increment", o.byInt, &f.count.By}, {"LBOUND", o.lower, &f.count.Lower}, {"UBOUND", o.upper, &f.count.Upper}} {
		if number.text == nil {
			continue
		}
		var ok bool
		if *number.to, ok = argument.ParseInt(number.text); !ok {
			return fmt.Sprintf(errIncrement, number.name)
		}
	}
	if f.count.Lower > f.count.Upper {
		return errBounds
	}
	return f.readExpiry(o.expiry)
}

// readExpiry reads EX, PX, EXAT or PXAT. As the shape outlives now, a time from now on must fit whenever the call comes.
func (f *Shape) readExpiry(e argument.Expiry) (text string) {
	if e.Unit == "" {
		return ""
	}
	if _, text = e.AtNS("increx", math.MaxInt64); text != "" {
		return text
	}
	f.count.TimeNS, _ = e.AtNS("increx", 0)
	f.count.Expire = store.ExpireAt
	if e.Unit == "EX" || e.Unit == "PX" {
		f.count.Expire = store.ExpireIn
	}
	return ""
}

// answerCounts replies to INCR and its kin, and to INCREX.
func (d *Decider) answerCounts(c *command.Call, b *Batch) {
	for i := range b.counts {
		r, f := &b.counts[i], b.shapes[i]
		switch {
		case r.Err != nil:
			d.fail(c, f, c.ErrorText(r.Err))
		case !f.pair:
			c.Int(r.Value)
		default:
			c.Array(2)
			c.Int(r.Value)
			c.Int(r.Added)
			d.countBounded(b, r)
		}
	}
}

// countBounded counts an INCREX that a bound may have denied. Its window is its key's expiry.
func (d *Decider) countBounded(b *Batch, r *store.CountRequest) {
	if !r.Met || !r.Bounded() || r.By == 0 {
		return
	}
	d.note(decisions.ByCalls, 1, b.hashed, r.Hash, 0, r.Key)
	n := d.Decided.In(d.Counts.Literal(cell.Window), d.lane)
	if r.Added != 0 {
		n[decisions.CountAllowed]++
		return
	}
	n[decisions.CountLimited]++
	d.note(decisions.ByDenied, 1, b.hashed, r.Hash, 0, r.Key)
}
