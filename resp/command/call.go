package command

import (
	"context"
	"fmt"
	"math"

	"celld/store"
)

// Call is one call of a command: a client's, one of a transaction, a script or a file, or one from within the process. Its handler
// appends one reply.
//
// A Call is used again for the next command, and its arguments lie in a buffer that the connection reads into again. The package's
// comment says what may be kept.
type Call struct {
	Reply
	Host
	Row   *Row
	Args  [][]byte // the name first
	NowNS int64    // limit time, read once a batch
}

// Step does a part of a command. It reports whether there is more.
type Step func(c *Call) (more bool)

// Work is the part of a command that a goroutine does. It returns a function that replies, which runs on the caller's side.
type Work func() (reply func(c *Call))

// Host runs calls. It is all that a Call knows of its origin.
type Host interface {
	// Keys are the keys that the call may use.
	Keys() Keys

	// Connection is the client's; nil: the call is made within the process.
	Connection() Connection

	// Access is how the call reaches keys: its time, and the rights of its user.
	Access() store.Access

	// Inside reports whether the call is part of a transaction or a script. No other command runs
	// beside these, and their calls do not wait.
	Inside() bool

	// InSteps calls step until that returns false. A handler does nothing after it.
	InSteps(step Step)

	// MayOffload reports whether Offload may be called: not in a transaction, nor in a script, nor for an engine's keys.
	MayOffload() bool

	// Offload does the command's work in a goroutine. Work with a long reply runs one at a time. begin gets arguments that
	// nobody else changes. A handler does nothing after it.
	Offload(long bool, begin func(args [][]byte) Work)

	// Later waits for an engine, which begin asks. It does not block, and calls done once, from any goroutine, with what replies. ctx ends
	// when the client has gone. A handler does nothing after it, and its row is Overall.
	Later(begin func(ctx context.Context, done func(reply func(*Call))))

	// Shared calls do, from any goroutine, while no transaction or script runs alone.
	Shared(a store.Access, do func())

	// Once calls effect when the command's changes are final. A handler may run again, so every effect that others can see goes through it.
	Once(effect func())

	// Alone calls do while no other connection's command runs, or answers with an error.
	Alone(do func())

	// Did notes work that the size of the call does not show, so that others are served: arguments of 2 µs, and bytes.
	Did(args, bytes int)

	// CountDecisions adds what the call's batch has decided so far to the counts, for a reply that shows them.
	CountDecisions()

	// LeaseEnds notes when a lease ends, or with 0 that it has ended, for a client whose leases end with its connection.
	LeaseEnds(id, endNS int64)

	// MostOutput is how many bytes of replies a client may have.
	MostOutput() int

	// OverOutput ends a call whose reply has more bytes than that, and reports whether it did.
	OverOutput(bytes int) bool

	// TypeOf is the type of a key that exists, as TYPE tells it.
	TypeOf(key []byte, st store.Value) string

	// ErrorText is the text of an error of the store.
	ErrorText(err error) string
}

// WallNS is the call's time by the wall clock, in Unix nanoseconds.
func (c *Call) WallNS() int64 { return c.Keys().WallNS(c.NowNS) }

// moduleVersion is the release of redis-cell whose replies celld gives, 0.5.0, written as a module version.
const moduleVersion = 500

// ModuleLine is redis-cell in INFO.
var ModuleLine = fmt.Sprintf("name=redis-cell,ver=%d,api=1,filters=0,usedby=[],using=[],options=[]", moduleVersion)

// Modules lists redis-cell as a loaded module, because clients look for it before they use CL.THROTTLE.
func (c *Call) Modules() {
	c.Array(1)
	c.Map(4)
	c.Pair("name", "redis-cell")
	c.Field("ver", moduleVersion)
	c.Pair("path", "")
	c.String("args")
	c.Array(0)
}

// Fail answers with an error of the store.
func (c *Call) Fail(err error) { c.Error("%s", c.ErrorText(err)) }

// lister hosts the calls of List: they know how much they may write, and nothing else.
type lister struct {
	Host
	most int
	over bool
}

func (l *lister) OverOutput(bytes int) bool {
	l.over = l.over || bytes > l.most
	return l.over
}

// List runs a handler that only reads, and writes a long reply, in a goroutine where it may. The handler gets a Call of its own with the
// arguments, the time, the protocol and OverOutput. CL.STATS of 65,536 policies takes 110 ms, CL.POLICY LIST 25 and CLIENT LIST of 10,000
// clients 30, and meanwhile the event loop would serve nobody.
func (c *Call) List(list func(*Call)) {
	c.CountDecisions()
	if !c.MayOffload() {
		list(c)
		return
	}
	l := &lister{most: c.MostOutput()}
	own := &Call{Reply: Reply{RESP3: c.RESP3}, Host: l, Row: c.Row, NowNS: c.NowNS}
	c.Offload(true, func(args [][]byte) Work {
		own.Args = args
		return func() func(*Call) {
			list(own)
			return func(c *Call) {
				size := len(own.Out)
				if l.over { // the handler has given up
					size = math.MaxInt
				}
				switch {
				case c.OverOutput(size):
				case len(c.Out) == 0: // 14 MB of CL.STATS would take 3 ms to copy
					c.Out = own.Out
				default:
					c.Out = append(c.Out, own.Out...)
				}
			}
		}
	})
}

// keysAtOnce is how many keys a step handles: a key takes 0.5 to 2 µs.
const keysAtOnce = 128

// EachKey calls do for each of the keys among Args[1:], in steps, and then replies with how often do was true.
func (c *Call) EachKey(do func(c *Call, key []byte) bool, reply func(c *Call, n int64)) {
	at, n := 1, int64(0)
	if len(c.Args) <= keysAtOnce {
		for _, key := range c.Args[1:] {
			if do(c, key) {
				n++
			}
		}
		reply(c, n)
		return
	}
	c.InSteps(func(c *Call) (more bool) {
		for end := min(at+keysAtOnce, len(c.Args)); at < end; at++ {
			if do(c, c.Args[at]) {
				n++
			}
		}
		if at < len(c.Args) {
			return true
		}
		reply(c, n)
		return false
	})
}

// DeleteKeys deletes the keys among Args[1:], in steps, and replies with how many there were.
func (c *Call) DeleteKeys() {
	c.EachKey(func(c *Call, key []byte) bool { return c.Keys().Delete(key, c.NowNS) }, (*Call).Int)
}
