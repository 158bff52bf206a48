package keys

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/glob"
	"celld/resp/wire"
	"celld/store"
)

// Space reaches all keys where an engine keeps them. It calls done once, from any goroutine, before it returns or later.
type Space interface {
	Scan(ctx context.Context, o store.ScanOptions, done func(next uint64, keys []string, err error))
	Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error))
	Size(ctx context.Context, done func(n int64, err error))
	RandomKey(ctx context.Context, done func(key string, found bool, err error))
	Flush(done func(err error))
}

// all is the commands over all keys. They ask an engine where one keeps the keys, and else walk the table.
type all struct{ Options }

// engine is all keys of an engine; nil: the keys are in the table.
func (a all) engine() Space {
	if a.Space == nil {
		return nil
	}
	return a.Space()
}

// answer answers with an error, or with what replies where there is none.
func answer(done func(func(*command.Call)), err error, reply func(c *command.Call)) {
	if err != nil {
		reply = func(c *command.Call) { c.Fail(err) }
	}
	done(reply)
}

func (a all) size(c *command.Call) {
	space := a.engine()
	if space == nil {
		c.Int(int64(c.Keys().Len(c.NowNS)))
		return
	}
	c.Later(func(ctx context.Context, done func(func(*command.Call))) {
		space.Size(ctx, func(n int64, err error) {
			answer(done, err, func(c *command.Call) { c.Int(n) })
		})
	})
}

var flushWords = argument.Options{Flags: []string{"ASYNC", "SYNC"}, OneOf: [][]string{{"ASYNC", "SYNC"}}, Once: true,
	Refusal: argument.ErrSyntax}

// flush goes on when its client has gone.
func (a all) flush(c *command.Call) {
	space := a.engine()
	switch {
	case flushWords.Read(c.Args[1:], func(string, []byte) string { return "" }) != "":
		c.Error(argument.ErrSyntax)
	case space == nil:
		c.Keys().Flush()
		c.OK()
	default:
		c.Later(func(_ context.Context, done func(func(*command.Call))) {
			space.Flush(func(err error) {
				answer(done, err, func(c *command.Call) { c.OK() })
			})
		})
	}
}

func (a all) randomKey(c *command.Call) {
	reply := func(c *command.Call, key string, found bool) {
		if found {
			c.String(key)
		} else {
			c.Null()
		}
	}
	space := a.engine()
	if space == nil {
		key, found := c.Keys().Random(c.NowNS)
		reply(c, key, found)
		return
	}
	c.Later(func(ctx context.Context, done func(func(*command.Call))) {
		space.RandomKey(ctx, func(key string, found bool, err error) {
			answer(done, err, func(c *command.Call) { reply(c, key, found) })
		})
	})
}

// keysStep is how many keys KEYS looks at, or writes, in a step.
const keysStep = 1000

// stepWork bounds what is done in one go, in steps of about 1 ns: the bytes of the keys, times the words of the pattern's set, and
// keyWork for each key.
const (
	stepWork = 1 << 20
	keyWork  = 32
)

// insideWork bounds KEYS in a transaction or a script, beside which nobody else runs: 5 ms.
const insideWork = 5 * stepWork

func (a all) keys(c *command.Call) {
	g, ok := glob.Compile(c.Args[1], false)
	space := a.engine()
	switch {
	case !ok:
		c.Error(argument.ErrPatternLong, glob.MaxWild)
	case space == nil:
		keysInSteps(c, g)
	default:
		c.Later(func(ctx context.Context, done func(func(*command.Call))) {
			space.Keys(ctx, string(c.Args[1]), c.MostOutput(), func(keys []string, err error) {
				answer(done, err, func(c *command.Call) {
					bytes := 0
					for _, key := range keys {
						bytes += len(key) + 16
					}
					if !c.OverOutput(bytes) {
						c.Strings(keys)
					}
				})
			})
		})
	}
}

// keysInSteps walks the table in steps, and then writes what it has found in steps.
func keysInSteps(c *command.Call, g *glob.Pattern) {
	var found []string
	bytesFound, work, cursor, walked := 0, 0, uint64(0), false
	c.InSteps(func(c *command.Call) (more bool) {
		if walked {
			some := found[:min(len(found), keysStep)]
			found = found[len(some):]
			c.Out = wire.AppendBulks(c.Out, some...)
			return len(found) > 0
		}
		cursor = walk(c, cursor, keysStep, g, &work, func(key string, _ store.Value) {
			if g.Match([]byte(key)) {
				found = append(found, key)
				bytesFound += len(key) + 16
			}
		})
		switch walked = cursor == 0; {
		case c.OverOutput(bytesFound):
			return false
		case walked:
			c.Array(len(found))
		case c.Inside() && work > insideWork:
			c.Error(ErrKeysInside)
			return false
		}
		return !walked || len(found) > 0
	})
}

// walk goes on with a scan of the table, but ends after stepWork even if it has not looked at so many places. It adds to work.
func walk(c *command.Call, cursor uint64, places int, g *glob.Pattern, work *int, fn func(key string, st store.Value)) (next uint64) {
	until := *work + stepWork
	for n := max(1, 16/g.Steps(1)); places > 0 && *work < until; n = min(2*n, 256) {
		n = min(n, places)
		places -= n
		before := *work
		cursor = c.Keys().Scan(cursor, n, c.NowNS, func(key string, st store.Value) {
			*work += keyWork + g.Steps(len(key))
			fn(key, st)
		})
		if cursor == 0 {
			break
		}
		if *work-before > stepWork/16 {
			n = 1
		}
	}
	return cursor
}

// maxScanStep bounds the work of one SCAN, whatever its COUNT: 10,000 keys are about 1 ms.
const maxScanStep = 10_000

func (a all) scan(c *command.Call) {
	cursor, o, text := parseScan(c.Args)
	space := a.engine()
	switch {
	case text != "":
		c.Error("%s", text)
	case space == nil:
		scanTable(c, cursor, &o)
	case o.typed && o.ofType == "":
		replyScan(c, 0, nil)
	default:
		of := store.ScanOptions{Cursor: cursor, Count: min(o.count, maxScanStep), Type: o.ofType, Pattern: "*"}
		if o.pattern != nil {
			of.Pattern = string(o.pattern)
		}
		c.Later(func(ctx context.Context, done func(func(*command.Call))) {
			space.Scan(ctx, of, func(next uint64, keys []string, err error) {
				answer(done, err, func(c *command.Call) { replyScan(c, next, keys) })
			})
		})
	}
}

func scanTable(c *command.Call, cursor uint64, o *scanOptions) {
	var found []string
	work := 0
	next := walk(c, cursor, int(min(o.count, maxScanStep)), o.glob, &work, func(key string, st store.Value) {
		if (!o.typed || o.ofType == st.Type()) && o.matches(key) {
			found = append(found, key)
		}
	})
	replyScan(c, next, found)
}

func replyScan(c *command.Call, next uint64, keys []string) {
	c.Array(2)
	c.String(strconv.FormatUint(next, 10))
	c.Strings(keys)
}

// scanOptions are the options of SCAN, and those of HSCAN, which has no TYPE.
type scanOptions struct {
	pattern []byte
	glob    *glob.Pattern // of pattern; nil: all match
	count   int64
	ofType  string
	typed   bool
}

var (
	scanWords  = argument.Options{Valued: []string{"COUNT", "MATCH", "TYPE"}, Refusal: argument.ErrSyntax}
	hscanWords = argument.Options{Valued: []string{"COUNT", "MATCH"}, Refusal: argument.ErrSyntax}
)

// parseScan reads SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]. It also returns the text of an error, or "".
func parseScan(args [][]byte) (cursor uint64, o scanOptions, text string) {
	cursor, ok := argument.ParseDigits(args[1])
	if !ok {
		return 0, o, errInvalidCursor
	}
	o.count = 10
	text = scanWords.Read(args[2:], o.set)
	return cursor, o, text
}

func (o *scanOptions) set(option string, value []byte) (text string) {
	var ok bool
	switch option {
	case "COUNT":
		if o.count, ok = argument.ParseInt(value); !ok {
			return argument.ErrNotInteger
		}
		if o.count < 1 {
			return argument.ErrSyntax
		}
	case "MATCH":
		o.pattern = value
		if o.glob, ok = glob.Compile(value, false); !ok {
			return fmt.Sprintf(argument.ErrPatternLong, glob.MaxWild)
		}
	case "TYPE":
		o.ofType, o.typed = strings.ToLower(string(value)), true
	}
	return ""
}

func (o *scanOptions) matches(name string) bool {
	return o.glob == nil || o.glob.Match([]byte(name))
}
