package keys

import (
	"cmp"
	"errors"
	"slices"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
	"celld/store/policy"
)

// Tools see a key that holds limits as a hash. A field is the name of a limit, and its value is what is used of that limit.

// asideBytes is how many bytes of a value or of arguments take longer than a millisecond to read or to write as text.
const asideBytes = 128 << 10

// hashRead is a command's question about a key's limits: the names of those that it asks for, and how it replies with these and what is
// used of each.
type hashRead struct {
	asks  func(name string) bool
	reply func(c *command.Call, fields [][2]string, found bool)
}

// readHash answers a command that reads a key's limits, and an error where the key holds none, or leases lead to a key that the user may
// not read: what is used has that key's name. A goroutine writes a text that takes longer than a millisecond.
func readHash(c *command.Call, reads func(args [][]byte) hashRead) {
	keys, a := c.Keys(), c.Access()
	if bytes, _ := keys.KeyBytes(c.Args[1], c.NowNS); bytes < asideBytes || !c.MayOffload() {
		r := reads(c.Args)
		readFields(keys, c.Args[1], a, r).write(c, r)
		return
	}
	host := c.Host
	c.Offload(true, func(args [][]byte) command.Work {
		r := reads(args)
		return func() func(*command.Call) {
			var f *keyFields
			host.Shared(a, func() { f = readFields(keys, args[1], a, r) })
			f.makeText()
			return func(c *command.Call) { f.write(c, r) }
		}
	})
}

// keyFields are a key's limits: copies, as others wait for the key meanwhile.
type keyFields struct {
	states []store.LimitState
	text   [][2]string
	found  bool
	err    error
}

func readFields(keys command.Keys, key []byte, a store.Access, r hashRead) *keyFields {
	f := &keyFields{}
	var refused error
	f.found, f.err = keys.Limits(key, a, func(l *store.LimitState) {
		if refused != nil || !r.asks(string(l.AppendName(nil))) {
			return
		}
		if refused = l.Reach(a.May, true, false); refused == nil {
			copied := *l
			copied.State.Ring = slices.Clone(l.State.Ring)
			f.states = append(f.states, copied)
		}
	})
	f.err = cmp.Or(f.err, refused)
	return f
}

func (f *keyFields) makeText() {
	for i := range f.states {
		l := &f.states[i]
		f.text = append(f.text, [2]string{string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))})
	}
	f.states = nil
}

func (f *keyFields) write(c *command.Call, r hashRead) {
	if f.err != nil {
		c.Fail(f.err)
		return
	}
	f.makeText()
	bytes := 0
	for _, field := range f.text {
		bytes += len(field[1])
	}
	if !c.OverOutput(bytes) {
		r.reply(c, f.text, f.found)
	}
}

func hgetall(c *command.Call) {
	readHash(c, func([][]byte) hashRead {
		return hashRead{func(string) bool { return true }, func(c *command.Call, fields [][2]string, _ bool) {
			c.Map(len(fields))
			c.Pairs(fields)
		}}
	})
}

// hscan returns all fields at once, whatever COUNT says, as Redis does with a small hash.
func hscan(c *command.Call) {
	if _, ok := argument.ParseDigits(c.Args[2]); !ok {
		c.Error(errInvalidCursor)
		return
	}
	readHash(c, func(args [][]byte) hashRead {
		o := scanOptions{}
		text := hscanWords.Read(args[3:], o.set)
		asks := func(name string) bool { return text == "" && o.matches(name) }
		return hashRead{asks, func(c *command.Call, fields [][2]string, found bool) {
			if found && text != "" {
				c.Error("%s", text)
				return
			}
			c.Array(2)
			c.String("0")
			c.Array(2 * len(fields))
			c.Pairs(fields)
		}}
	})
}

func hget(c *command.Call) {
	readHash(c, func(args [][]byte) hashRead {
		return hashRead{func(name string) bool { return name == string(args[2]) }, func(c *command.Call, fields [][2]string, _ bool) {
			if len(fields) == 0 {
				c.Null()
			} else {
				c.String(fields[0][1])
			}
		}}
	})
}

func hlen(c *command.Call) {
	n := int64(0)
	if _, err := c.Keys().Limits(c.Args[1], c.Access(), func(*store.LimitState) { n++ }); err != nil {
		c.Fail(err)
		return
	}
	c.Int(n)
}

// hset accepts the fields that HGETALL shows. redis-cli --pipe sends HSET from an append-only file, and Redis's tools copy keys
// by it.
func hset(c *command.Call) {
	if len(c.Args)%2 != 0 {
		c.Error(command.ErrArity, "hset")
		return
	}
	keys, bytes := c.Keys(), 0
	for _, arg := range c.Args {
		bytes += len(arg)
	}
	if bytes < asideBytes || !c.MayOffload() {
		putFields(keys, c.Args)(c)
		return
	}
	c.Offload(true, func(args [][]byte) command.Work {
		return func() func(*command.Call) { return putFields(keys, args) }
	})
}

// putFields reads fields, and returns what puts them under their key and replies.
func putFields(keys command.Keys, args [][]byte) func(*command.Call) {
	var fields []store.Field
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		field, err := keys.ParseField(string(rest[0]), string(rest[1]))
		if errors.Is(err, policy.ErrNoPolicy) {
			return func(c *command.Call) { c.Error(argument.ErrNoPolicy, argument.ShortText(rest[0][1:])) }
		}
		if err != nil {
			return func(c *command.Call) { c.Error(errHashField, argument.ShortText(rest[0])) }
		}
		fields = append(fields, field)
	}
	return func(c *command.Call) {
		added, err := c.Keys().PutFields(args[1], fields, true, c.Access())
		if err != nil {
			c.Fail(err)
			return
		}
		c.Int(int64(added))
	}
}
