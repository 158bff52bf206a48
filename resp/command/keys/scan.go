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
	"celld/store/remote"
)

// Space reaches all keys where an engine keeps them. It calls done once, from any goroutine, before it returns or later.
type Space interface {
	Scan(ctx context.Context, o remote.ScanOptions, done func(next uint64, keys []string, err error))
	Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error))
	Size(ctx context.Context, done func(n int64, err error))
	RandomKey(ctx context.Context, done func(key string, found bool, err error))
	Flush(done func(err error))
}

// all is the commands over all keys. Its methods ask an engine and reply with its answer. The functions beside them walk the table.
type all struct{ Options }

// answer answers with an error, or with what replies where there is none.
func answer(done func(func(*command.Call)), err error, reply func(c *command.Call)) {
	if err != nil {
		reply = func(c *command.Call) { c.Fail(err) }
	}
	done(reply)
}

// refuse answers with a text.
func refuse(done func(func(*command.Call)), text string) {
	done(func(c *command.Call) { c.Error("%s", text) })
}

func dbSize(c *command.Call) { c.Int(int64(c.Keys().Len(c.NowNS))) }

func (a all) size(ctx context.Context, _ *command.Call, done func(func(*command.Call))) {
	a.Space().Size(ctx, func(n int64, err error) {
		answer(done, err, func(c *command.Call) { c.Int(n) })
	})
}

var flushWords = argument.Options{Flags: []string{"ASYNC", "SYNC"}, Refusal: argument.ErrSyntax}

// mayFlush checks the arguments of FLUSHALL and FLUSHDB.
func mayFlush(args [][]byte) bool {
	return len(args) <= 2 && flushWords.Read(args[1:], func(string, []byte) string { return "" }) == ""
}

func flush(c *command.Call) {
	if !mayFlush(c.Args) {
		c.Error(argument.ErrSyntax)
		return
	}
	c.Keys().Flush()
	c.OK()
}

// flush goes on when its client has gone.
func (a all) flush(_ context.Context, c *command.Call, done func(func(*command.Call))) {
	if !mayFlush(c.Args) {
		refuse(done, argument.ErrSyntax)
		return
	}
	a.Space().Flush(func(err error) {
		answer(done, err, func(c *command.Call) { c.OK() })
	})
}

func replyRandom(c *command.Call, key string, found bool) {
	if found {
		c.String(key)
	} else {
		c.Null()
	}
}

func randomKey(c *command.Call) {
	key, found := c.Keys().Random(c.NowNS)
	replyRandom(c, key, found)
}

func (a all) randomKey(ctx context.Context, _ *command.Call, done func(func(*command.Call))) {
	a.Space().RandomKey(ctx, func(key string, found bool, err error) {
		answer(done, err, func(c *command.Call) { replyRandom(c, key, found) })
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

// keys walks the table in steps, and then writes what it has found in steps.
func keys(c *command.Call) {
	g, ok := glob.Compile(c.Args[1], false)
	if !ok {
		c.Error(argument.ErrPatternLong, glob.MaxWild)
		return
	}
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

func (a all) keys(ctx context.Context, c *command.Call, done func(func(*command.Call))) {
	if _, ok := glob.Compile(c.Args[1], false); !ok {
		refuse(done, fmt.Sprintf(argument.ErrPatternLong, glob.MaxWild))
		return
	}
	a.Space().Keys(ctx, string(c.Args[1]), c.MostOutput(), func(keys []string, err error) {
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

func scan(c *command.Call) {
	cursor, o, text := parseScan(c.Args)
	if text != "" {
		c.Error("%s", text)
		return
	}
	var found []string
	work := 0
	next := walk(c, cursor, int(min(o.count, maxScanStep)), o.glob, &work, func(key string, st store.Value) {
		if (!o.typed || o.ofType == st.Type()) && o.matches(key) {
			found = append(found, key)
		}
	})
	replyScan(c, next, found)
}

func (a all) scan(ctx context.Context, c *command.Call, done func(func(*command.Call))) {
	cursor, o, text := parseScan(c.Args)
	if text != "" {
		refuse(done, text)
		return
	}
	if o.typed && o.ofType == "" {
		done(func(c *command.Call) { replyScan(c, 0, nil) })
		return
	}
	of := remote.ScanOptions{Cursor: cursor, Count: min(o.count, maxScanStep), Type: o.ofType, Pattern: "*"}
	if o.pattern != nil {
		of.Pattern = string(o.pattern)
	}
	a.Space().Scan(ctx, of, func(next uint64, keys []string, err error) {
		answer(done, err, func(c *command.Call) { replyScan(c, next, keys) })
	})
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
