// Package script runs Lua scripts as Redis's EVAL does, on gopher-lua. It knows neither sessions nor commands: a Host runs
// what a script calls.
//
// A script sees what Redis gives it, except coroutines (a gopher-lua coroutine cannot be interrupted) and the libraries bit,
// cjson, cmsgpack and struct. It cannot reach files, the system, other scripts or the next run: globals and libraries are
// read-only. What a script may use is bounded:
//
//   - time: Host.Tick is called every 256 instructions, or sooner if they take more than a millisecond, and may end the script
//   - memory: maxMemory more than the process held when the script began. What garbage and single instructions add has a bound,
//     too: the heap has less than 4 * maxMemory more
//   - errors: one costs what its text costs, however deep the calls are (see protect)
//   - stack: 300 calls deep, of which a pcall takes two, and 64k values
//   - text: MaxScript bytes, maxChunk in loadstring and load, maxNesting levels deep, maxFunctions functions, maxConstants constants
package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"celld/resp/wire"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	lua "github.com/yuin/gopher-lua"
)

// Host runs the commands of a script.
type Host interface {
	// Call runs a command and returns its reply as RESP. The arguments are valid during the call, the reply until the next one.
	Call(args [][]byte) (reply []byte)
	// Tick returns an error when the script is to end.
	Tick() error
	// NowNS is a clock in nanoseconds.
	NowNS() int64
	// Log is redis.log: level 0 is debug, 3 is a warning.
	Log(level int, text string)
	// SetProtocol sets the protocol of Call's replies: 2 or 3.
	SetProtocol(version int)
	// OverOutput says whether a reply of so many bytes is too long to be sent. Then no more is appended.
	OverOutput(bytes int) bool
}

const (
	// MaxScript is the longest script in bytes. Compiling takes up to 150 times as much memory, and 14 KB for each function.
	MaxScript = 64 << 10

	// maxChunk is the longest text that a script compiles, in bytes. It takes up to 3 ms, in which nothing else happens.
	maxChunk = 4 << 10

	cachedBytes  = 16 << 20 // bound on all scripts that are kept, by estimate
	mostFaulty   = 16
	perScript    = 2 << 10
	perByte      = 10 // of text: 1 to 9 were measured
	perFunction  = 1 << 10
	sourceName   = "user_script"
	tickEvery    = 256
	sliceNS      = 1_000_000
	tickBytes    = 4 << 20 // bytes that instructions may read between two ticks: a < b takes 1.5 ns a byte
	maxCalls     = 300
	maxRegistry  = 64 << 10
	maxReplyDeep = 1000
)

// A Script is a compiled script. Only the Engine that compiled it can run it.
type Script struct {
	SHA      string // in lower case
	ReadOnly bool   // its first line says flags=no-writes
	fn       *lua.LFunction
	size     int
}

// Engine compiles, keeps and runs scripts. Its methods, and those of its Scripts, are for one goroutine at a time.
type Engine struct {
	L       *lua.LState
	globals *lua.LTable
	guard   *lua.LFunction // see protect
	bottom  *lua.LFunction // the guard that runs a script
	nothing *lua.LFunction
	hidden  map[string]*lua.LFunction   // what the rewriter calls, by the names that it writes
	worn    bool                        // gopher-lua has panicked
	sealed  map[*lua.LTable]*lua.LTable // read-only tables, and the tables that they show
	scripts *simplelru.LRU[string, *Script]
	faulty  *simplelru.LRU[string, error] // why the last few that do not compile do not, by SHA1
	bytes   int

	// Of the run.
	host    Host
	script  *Script
	failure error
	resp3   bool  // what redis.setresp asked for
	left    int   // instructions until the next tick
	pace    int   // instructions that take less than sliceNS, at most tickEvery
	beganNS int64 // the first instruction after the last tick
	longest int   // bytes of a text that the script may have
	ended   error
	broken  any  // a panic of a command
	line    int  // of the last error
	counted bool // the reply is an error that a command has answered
	memory  meter
	argText []byte
	args    [][]byte
}

// NewEngine returns an engine without scripts.
func NewEngine() *Engine {
	e := &Engine{}
	e.open()
	return e
}

// open makes a new interpreter and forgets all scripts.
func (e *Engine) open() {
	e.sealed, e.bytes, e.worn = map[*lua.LTable]*lua.LTable{}, 0, false
	e.L = lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: maxCalls,
		RegistrySize: 1 << 10, RegistryMaxSize: maxRegistry, RegistryGrowStep: 16 << 10})
	e.openLibraries()
	e.hidden = map[string]*lua.LFunction{}
	for name, function := range map[string]lua.LGFunction{
		concatName: e.luaConcat, setName: e.luaSet, fillName: e.luaFill, listName: e.luaList, numberName: luaNumber,
	} {
		e.hidden[name] = e.L.NewFunction(function)
	}
	e.guard, e.bottom, e.nothing = e.L.NewFunction(e.luaGuard), e.L.NewFunction(e.luaGuard), e.L.NewFunction(luaNothing)
	e.L.SetContext(hook{e})
	e.faulty, _ = simplelru.NewLRU[string, error](mostFaulty, nil)
	e.scripts, _ = simplelru.NewLRU[string, *Script](cachedBytes/perScript, func(_ string, s *Script) { e.bytes -= s.size })
}

// SHA1 returns the name of a script: the SHA-1 of its text, in lower-case hexadecimal.
func SHA1(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// Get returns a script by its SHA1, in upper or lower case. It counts as a use of the script.
func (e *Engine) Get(sha string) (*Script, bool) {
	if s, ok := e.scripts.Get(sha); ok || len(sha) != 2*sha1.Size {
		return s, ok
	}
	return e.scripts.Get(strings.ToLower(sha))
}

// Has says whether Get would find a script. It does not count as a use.
func (e *Engine) Has(sha string) bool { return e.scripts.Contains(strings.ToLower(sha)) }

// Knows says whether Load need not compile a script.
func (e *Engine) Knows(sha string) bool { return e.scripts.Contains(sha) || e.faulty.Contains(sha) }

// Flush forgets all scripts.
func (e *Engine) Flush() {
	e.scripts.Purge()
	e.faulty.Purge()
}

// Kept returns the number of scripts, and their estimated size in bytes.
func (e *Engine) Kept() (scripts, bytes int) { return e.scripts.Len(), e.bytes }

// Keep keeps a compiled script. The least recently used scripts make room. The error is Redis's text for the reply. Keep may be called
// once for each Compiled.
func (e *Engine) Keep(c *Compiled) (*Script, error) {
	if c.err != nil {
		e.faulty.Add(c.script.SHA, c.err)
		return nil, c.err
	}
	if s, ok := e.scripts.Get(c.script.SHA); ok {
		return s, nil
	}
	s, err := &c.script, error(nil)
	if s.fn, err = e.function(c.proto, sourceName); err != nil {
		err = fmt.Errorf("ERR Error compiling script (new function): %w", err)
		e.faulty.Add(s.SHA, err)
		return nil, err
	}
	e.bytes += s.size
	e.scripts.Add(s.SHA, s)
	for e.bytes > cachedBytes {
		e.scripts.RemoveOldest()
	}
	return s, nil
}

// Load compiles a script and keeps it, if it is not kept yet.
func (e *Engine) Load(text []byte) (*Script, error) {
	sha := SHA1(text)
	if s, ok := e.scripts.Get(sha); ok {
		return s, nil
	}
	if err, ok := e.faulty.Get(sha); ok {
		return nil, err
	}
	return e.Keep(Compile(text))
}

// shebang reads a first line such as #!lua flags=no-writes, and returns the script with that line empty.
func (s *Script) shebang(text string) (string, error) {
	if !strings.HasPrefix(text, "#!") {
		return text, nil
	}
	line, rest, found := strings.Cut(text, "\n")
	if !found {
		return "", errors.New("ERR Invalid script shebang")
	}
	words := strings.Fields(line)
	if words[0] != "#!lua" {
		return "", fmt.Errorf("ERR Unexpected engine in script shebang: %s", words[0])
	}
	for _, word := range words[1:] {
		flags, found := strings.CutPrefix(word, "flags=")
		if !found {
			return "", fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		for flag := range strings.SplitSeq(flags, ",") {
			switch flag {
			case "no-writes":
				s.ReadOnly = true
			case "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys", "":
			default:
				return "", fmt.Errorf("ERR Unexpected flag in script shebang: %s", flag)
			}
		}
	}
	return "\n" + rest, nil
}

// Run runs a script. AppendReply then gives its reply.
//
// A panic in Host.Call ends the script and comes out of Run, even if the script catches errors.
func (e *Engine) Run(s *Script, host Host, keys, args [][]byte) {
	e.L.SetTop(0)
	e.script, e.failure = s, nil
	e.host, e.resp3, e.longest, e.ended, e.broken, e.line, e.counted, e.memory = host, false, 0, nil, nil, 0, false, meter{}
	e.globals.RawSetString("KEYS", e.stringTable(keys))
	e.globals.RawSetString("ARGV", e.stringTable(args))
	e.pace, e.beganNS = tickEvery, host.NowNS()
	e.left = e.untilTick()
	e.L.Push(e.bottom)
	e.L.Push(s.fn)
	e.failure = e.L.PCall(1, 1, nil)
	if e.broken != nil {
		panic(e.broken)
	}
}

// AppendReply appends the reply of the last Run to out, in RESP 2 or 3. Call it once after each Run.
func (e *Engine) AppendReply(out []byte, resp3 bool) []byte {
	if e.failure != nil {
		out = e.appendFailure(out, e.script, e.failure)
	} else {
		w := &replyWriter{e: e, resp3: resp3, start: len(out)}
		if out = w.append(out, e.L.Get(-1), 0); w.full {
			out = wire.AppendError(out[:w.start], errMemory.Error())
		}
	}
	e.L.SetTop(0)
	e.host, e.failure = nil, nil
	if e.worn {
		e.open()
	}
	return out
}

// PassedOn says whether the last reply is an error of a command of the script. That command has already counted it.
func (e *Engine) PassedOn() bool { return e.counted }

func (e *Engine) stringTable(list [][]byte) *lua.LTable {
	t := e.L.CreateTable(len(list), 0)
	for i, text := range list {
		t.RawSetInt(i+1, textOf(e, text))
	}
	return t
}

// appendFailure appends the error that ended a script, with the script's name and line, in Redis's words.
func (e *Engine) appendFailure(out []byte, s *Script, err error) []byte {
	text, line := "ERR "+err.Error(), 0
	var api *lua.ApiError
	if errors.As(err, &api) {
		text, line = e.errorText(api.Object)
	}
	if e.ended != nil { // the script may have changed its text
		text, e.counted = e.ended.Error(), false
	}
	if line > 0 {
		text = fmt.Sprintf("%s script: %s, on @%s:%d.", text, s.SHA, sourceName, line)
	}
	return wire.AppendError(out, text)
}

// errorText returns the text of an uncaught error, and its line, or 0.
func (e *Engine) errorText(object lua.LValue) (text string, line int) {
	if t, ok := object.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			line, ok := t.RawGetString("line").(lua.LNumber)
			if !ok {
				line = lua.LNumber(e.line)
			}
			e.counted = lua.LVAsBool(t.RawGetString(countedField))
			return string(text), int(line)
		}
		return "ERR unknown error", e.line // redis-server 7.0 dies of it
	}
	text = toString(object)
	if place, found := strings.CutPrefix(text, sourceName+":"); found {
		digits, _, _ := strings.Cut(place, ":")
		if n, err := strconv.Atoi(digits); err == nil {
			return "ERR " + text, n
		}
	}
	return "ERR " + text, e.line
}

// lineOf returns the line that runs level functions above the caller of a Go function.
func (e *Engine) lineOf(L *lua.LState, level int) int {
	_, place, _ := strings.Cut(L.Where(level+1), ":")
	n, _ := strconv.Atoi(strings.TrimSuffix(place, ":"))
	return n
}

// hook makes an engine a context.Context. gopher-lua has no debug hooks, but before each instruction it asks its context whether
// it is done.
type hook struct{ *Engine }

func (h hook) Deadline() (time.Time, bool) { return time.Time{}, false }
func (h hook) Value(any) any               { return nil }

func (h hook) Err() error {
	if h.broken != nil {
		return errors.New("broken")
	}
	return h.ended
}

var done = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done counts an instruction. Once a script must end, each further instruction fails, so the script cannot catch that.
func (h hook) Done() <-chan struct{} {
	if h.left--; h.left > 0 {
		return nil
	}
	return h.tick()
}

func (e *Engine) tick() <-chan struct{} {
	if e.ended == nil && e.host != nil {
		e.adapt()
		if e.ended = e.host.Tick(); e.ended == nil {
			e.ended = e.memory.tick()
		}
		e.beganNS = e.host.NowNS()
	}
	if e.ended != nil || e.broken != nil {
		return done
	}
	e.left = e.untilTick()
	return nil
}

// adapt sets the pace by how long the instructions since the last tick took. One may take a hundred microseconds: a call with 60,000
// arguments, or next() on a table of 100,000 keys that are gone.
func (e *Engine) adapt() {
	if took := e.host.NowNS() - e.beganNS; took > sliceNS {
		e.pace = max(1, int(int64(e.pace)*sliceNS/took))
	} else {
		e.pace = min(tickEvery, e.pace+1+e.pace/8)
	}
}

// step counts a call by a library function as an instruction: what it calls may have none.
func (e *Engine) step(L *lua.LState) {
	if e.left--; e.left <= 0 && e.tick() != nil {
		L.RaiseError("ended")
	}
}

// untilTick returns how many instructions may run before the next tick. Each may compare two texts, or hash one.
func (e *Engine) untilTick() int { return max(1, min(e.pace, tickBytes/max(1, e.longest))) }

// textOf makes a Lua string, and notes its length for untilTick.
func textOf[T string | []byte](e *Engine, text T) lua.LString {
	e.longest = max(e.longest, len(text))
	return lua.LString(text)
}

var _ context.Context = hook{}

// endBy ends the script at its next instruction.
func (e *Engine) endBy(err error) {
	if e.ended == nil {
		e.ended = err
	}
	e.left = 0
}
