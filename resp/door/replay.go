package door

import (
	"context"
	"errors"

	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/spec"
	"celld/store"
)

// replay hosts the commands of another server's append-only file. Each runs whole, while nobody is served. Nobody reads its reply, nor
// counts it.
type replay struct {
	command.Host // nil: commands that change something ask for no more than what follows
	*Door
	call    command.Call
	decider *decide.Decider
}

// What is wrong with a command of a file.
var (
	errNoChange = errors.New("not a command that changes limits")
	errRefused  = errors.New("refused")
)

// Replay returns a function that runs a command of a file. One that changes nothing, or that is answered with an error, is an error.
func (d *Door) Replay() func(args [][]byte) error {
	r := &replay{Door: d, decider: d.NewDecider(0)}
	c := &r.call
	c.Host = r
	return func(args [][]byte) error {
		row := d.Commands.FindCall(args)
		if row == nil || row.Flags&spec.Write == 0 || row.ArityError(len(args)) != "" {
			return errNoChange
		}
		c.Row, c.Args, c.NowNS, c.Out = row, args, d.Clock(), c.Out[:0]
		if row.Run(c); len(c.Out) > 0 && c.Out[0] == '-' {
			return errRefused
		}
		return nil
	}
}

func (r *replay) Keys() command.Keys             { return r.Store }
func (r *replay) Access() store.Access           { return store.Access{NowNS: r.call.NowNS} }
func (r *replay) Connection() command.Connection { return nil }
func (r *replay) Inside() bool                   { return true }
func (r *replay) MayOffload() bool               { return false }
func (r *replay) Alone(do func())                { do() }
func (r *replay) Once(func())                    {} // lets others see what a command did
func (r *replay) Did(int, int)                   {}
func (r *replay) ErrorText(err error) string     { return StoreText(err) }
func (r *replay) Decider() *decide.Decider       { return r.decider }
func (r *replay) Failed(*command.Row, []byte)    {}

func (r *replay) InSteps(step command.Step) {
	for step(&r.call) { //nolint:revive // it does all
	}
}

func (r *replay) Later(begin func(ctx context.Context, done func(reply func(*command.Call)))) {
	begin(context.Background(), func(reply func(*command.Call)) { reply(&r.call) })
}

func (r *replay) Decide(c *command.Call, f *decide.Shape) {
	b := &decide.Batch{} // of its own, as the limiter may keep it
	b.AddCall(f, c.Args)
	r.decider.Ask(b, r.Port, r.Access(), nil) // not the Store itself: then what is denied is told by Once
	r.decider.Answer(c, b)
}
