// Package budget bounds what a Lua script takes: time, and the memory of the process.
//
//	b := &budget.Budget{}
//	state.SetContext(b.Context())   // counts instructions
//	b.Start(host, 0)                // before each script
//	b.Charge(state, 32*n)           // before a library function allocates
//	err := b.Ended()                // why the script had to end
package budget

import (
	"context"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// TickEvery is how many instructions there are between two ticks at most.
	TickEvery = 256

	// TickBytes is how many bytes instructions may read between two ticks: a < b takes 1.5 ns a byte.
	TickBytes = 4 << 20

	sliceNS          = 1_000_000
	instructionBytes = 64 // reading so many bytes takes about as long as an instruction
)

// Host is asked while a script runs.
type Host interface {
	// Tick returns an error when the script is to end.
	Tick() error
	// NowNS is a clock in nanoseconds.
	NowNS() int64
}

// Budget is what one script at a time may take. Its zero value has no Host: nothing is bounded until Start.
type Budget struct {
	host    Host
	left    int   // instructions until the next tick
	pace    int   // instructions that take less than sliceNS, at most TickEvery
	beganNS int64 // the first instruction after the last tick
	longest int   // bytes of a text that the script may have
	ended   error
	memory  meter
}

// Start begins with a script. longest is how many bytes the longest text has that it is given.
func (b *Budget) Start(host Host, longest int) {
	*b = Budget{host: host, pace: TickEvery, beganNS: host.NowNS(), longest: longest}
	b.left = b.untilTick()
}

// Stop ends it: the Host is asked no more.
func (b *Budget) Stop() { b.host = nil }

// Ended is why the script had to end, nil where it did not.
func (b *Budget) Ended() error { return b.ended }

// EndBy ends the script at its next instruction.
func (b *Budget) EndBy(err error) {
	if b.ended == nil {
		b.ended = err
	}
	b.left = 0
}

// Spend counts bytes that a library function reads as instructions, so that the next tick comes sooner.
func (b *Budget) Spend(bytes int) { b.left -= bytes / instructionBytes }

// Charge counts an allocation of a library function before it is made. Above the bound it ends the script.
func (b *Budget) Charge(L *lua.LState, bytes int) {
	b.Spend(bytes)
	if !b.Allows(bytes) {
		L.RaiseError("not enough memory")
	}
}

// Allows is Charge without the error: it returns false above the bound.
func (b *Budget) Allows(bytes int) bool {
	err := b.memory.add(bytes)
	if err != nil {
		b.EndBy(err)
	}
	return err == nil
}

// Step counts a call by a library function as an instruction: what it calls may have none.
func (b *Budget) Step(L *lua.LState) {
	if b.left--; b.left <= 0 {
		b.Tick(L)
	}
}

// Tick asks the Host, and raises an error where the script is to end.
func (b *Budget) Tick(L *lua.LState) {
	if b.tick() != nil {
		L.RaiseError("ended")
	}
}

// Text makes a Lua string, and notes its length: instructions that read it take longer.
func Text[T string | []byte](b *Budget, text T) lua.LString {
	b.Note(len(text))
	return lua.LString(text)
}

// Note notes the length of a text that the script has.
func (b *Budget) Note(bytes int) { b.longest = max(b.longest, bytes) }

var done = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (b *Budget) tick() <-chan struct{} {
	if b.ended == nil && b.host != nil {
		b.adapt()
		if b.ended = b.host.Tick(); b.ended == nil {
			b.ended = b.memory.tick()
		}
		b.beganNS = b.host.NowNS()
	}
	if b.ended != nil {
		b.left = 0 // also where a library function has asked: no instruction runs any more
		return done
	}
	b.left = b.untilTick()
	return nil
}

// adapt sets the pace by how long the instructions since the last tick took. One may take a hundred microseconds: a call with 60,000
// arguments, or next() on a table of 100,000 keys that are gone.
func (b *Budget) adapt() {
	if took := b.host.NowNS() - b.beganNS; took > sliceNS {
		b.pace = max(1, int(int64(b.pace)*sliceNS/took))
	} else {
		b.pace = min(TickEvery, b.pace+1+b.pace/8)
	}
}

// untilTick returns how many instructions may run before the next tick. Each may compare two texts, or hash one.
func (b *Budget) untilTick() int { return max(1, min(b.pace, TickBytes/max(1, b.longest))) }

// Context counts the instructions of an interpreter. gopher-lua has no debug hooks, but before each instruction it asks its context
// whether it is done.
func (b *Budget) Context() context.Context { return hook{b} }

type hook struct{ *Budget }

func (h hook) Deadline() (time.Time, bool) { return time.Time{}, false }
func (h hook) Value(any) any               { return nil }

func (h hook) Err() error { return h.ended }

// Done counts an instruction. Once a script must end, each further instruction fails, so the script cannot catch that.
func (h hook) Done() <-chan struct{} {
	if h.left--; h.left > 0 {
		return nil
	}
	return h.tick()
}
