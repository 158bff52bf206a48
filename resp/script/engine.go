// Package script runs Lua scripts as Redis's EVAL does, on gopher-lua. It knows neither sessions nor commands: a Host runs
// what a script calls.
//
// A script sees what Redis gives it, but for coroutines (a gopher-lua coroutine cannot be interrupted) and the libraries bit,
// cjson, cmsgpack and struct. It cannot reach files, the system, other scripts or the next run: globals and libraries are
// read-only. What a script may use is bounded:
//
//   - time: Host.Tick is asked every 256 instructions, sooner where they may look at long texts, and may end it
//   - memory: maxMemory more than the process held when the script began
//   - stack: 200 calls deep, and 64k values
//   - text: MaxScript bytes, maxNesting levels deep, maxFunctions functions, maxConstants constants
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

// Host is what runs the commands of a script.
type Host interface {
	// Call runs a command and returns its reply as RESP. Neither is kept: the arguments are valid during the call, the reply
	// until the next.
	Call(args [][]byte) (reply []byte)
	// Tick returns an error when the script is to end.
	Tick() error
	// Log is redis.log: level 0 is debug, 3 is a warning.
	Log(level int, text string)
	// SetProtocol has the replies of Call be in RESP 2 or 3.
	SetProtocol(version int)
	// OverOutput says whether a reply of so many bytes is more than may be sent; if it is, no more is appended.
	OverOutput(bytes int) bool
}

const (
	// MaxScript is the most bytes that a script may have. Compiling takes up to 150 times as much memory, and 14 KB a function.
	MaxScript = 64 << 10

	cachedBytes  = 16 << 20 // of all scripts that are kept, by estimate
	perScript    = 2 << 10
	perByte      = 10 // of text: 1 to 9 were measured
	perFunction  = 1 << 10
	sourceName   = "user_script"
	tickEvery    = 256
	tickBytes    = 4 << 20 // that instructions between two ticks may look at: a < b takes 1.5 ns for each
	maxCalls     = 200
	maxRegistry  = 64 << 10
	maxReplyDeep = 1000
)

// A Script is compiled, and belongs to the Engine that did so.
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
	sealed  map[*lua.LTable]*lua.LTable // and what they show
	scripts *simplelru.LRU[string, *Script]
	bytes   int

	// Of the run.
	host    Host
	script  *Script
	failure error
	resp3   bool // what redis.setresp asked for
	left    int  // instructions until the next tick
	longest int  // bytes of a text that the script may have
	ended   error
	broken  any  // a panic of a command
	line    int  // of the last error
	counted bool // the reply is an error that a command has answered
	memory  meter
	argText []byte
	args    [][]byte
}

// NewEngine returns an engine that keeps no script yet.
func NewEngine() *Engine {
	e := &Engine{}
	e.open()
	return e
}

// open makes a new interpreter, for which nothing has been compiled.
func (e *Engine) open() {
	e.sealed, e.bytes = map[*lua.LTable]*lua.LTable{}, 0
	e.L = lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: maxCalls, RegistrySize: 1 << 10, RegistryMaxSize: maxRegistry, RegistryGrowStep: 1 << 10})
	e.openLibraries()
	e.L.SetContext(hook{e})
	e.scripts, _ = simplelru.NewLRU[string, *Script](cachedBytes/perScript, func(_ string, s *Script) { e.bytes -= s.size })
}

// SHA1 is the name of a script: of its text in hexadecimal.
func SHA1(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// Get returns a script that is kept, by its SHA1 in any case.
func (e *Engine) Get(sha string) (*Script, bool) {
	if s, ok := e.scripts.Get(sha); ok || len(sha) != 2*sha1.Size {
		return s, ok
	}
	return e.scripts.Get(strings.ToLower(sha))
}

// Has is Get, but is no use of the script.
func (e *Engine) Has(sha string) bool { return e.scripts.Contains(strings.ToLower(sha)) }

// Flush forgets all scripts.
func (e *Engine) Flush() { e.scripts.Purge() }

// Kept returns how many scripts are kept, and how many bytes they count.
func (e *Engine) Kept() (scripts, bytes int) { return e.scripts.Len(), e.bytes }

// Load compiles a script and keeps it. Those that were not used for longest make room.
func (e *Engine) Load(text []byte) (*Script, error) {
	sha := SHA1(text)
	if s, ok := e.scripts.Get(sha); ok {
		return s, nil
	}
	if len(text) > MaxScript {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s:1: the script has more than %d bytes", sourceName, MaxScript)
	}
	s := &Script{SHA: sha}
	source, err := s.shebang(string(text))
	if err != nil {
		return nil, err
	}
	functions := 0
	if s.fn, functions, err = e.compile(source, sourceName); err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %w", err)
	}
	s.size = perScript + perByte*len(text) + perFunction*functions
	e.bytes += s.size
	e.scripts.Add(sha, s)
	for e.bytes > cachedBytes {
		e.scripts.RemoveOldest()
	}
	return s, nil
}

// shebang reads what a first line such as #!lua flags=no-writes says, and returns the script with that line empty.
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

// Run runs a script. AppendReply then tells what came of it.
//
// A panic of the host in a Call ends the script and comes out of Run, even where the script catches errors.
func (e *Engine) Run(s *Script, host Host, keys, args [][]byte) {
	e.L.SetTop(0)
	e.script, e.failure = s, nil
	e.host, e.resp3, e.longest, e.ended, e.broken, e.line, e.counted, e.memory = host, false, 0, nil, nil, 0, false, meter{}
	e.globals.RawSetString("KEYS", e.stringTable(keys))
	e.globals.RawSetString("ARGV", e.stringTable(args))
	e.left = e.untilTick()
	e.failure = e.protected(s.fn)
	if e.broken != nil {
		panic(e.broken)
	}
}

// protected calls a function. A panic that gopher-lua does not catch is its own, such as of `local function f(...) return f(1, ...)
// end f()`: it leaves an interpreter that cannot be used, so a new one takes its place, and all scripts are forgotten.
func (e *Engine) protected(fn *lua.LFunction) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("stack overflow (%v)", cause)
			e.open()
		}
	}()
	e.L.Push(fn)
	return e.L.PCall(0, 1, nil)
}

// AppendReply appends the reply of the last Run to out, for a client of RESP 2 or 3. It is called once.
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
	return out
}

// PassedOn says whether the last reply is an error that a command of the script has answered, and so has counted.
func (e *Engine) PassedOn() bool { return e.counted }

func (e *Engine) stringTable(list [][]byte) *lua.LTable {
	t := e.L.CreateTable(len(list), 0)
	for i, text := range list {
		t.RawSetInt(i+1, textOf(e, text))
	}
	return t
}

// appendFailure answers with what ended a script, where in it, and which it was, in Redis's words.
func (e *Engine) appendFailure(out []byte, s *Script, err error) []byte {
	text, line := "ERR "+err.Error(), 0
	var api *lua.ApiError
	if errors.As(err, &api) {
		text, line = e.errorText(api.Object)
	}
	if e.ended != nil { // the script may have made anything of it
		text, e.counted = e.ended.Error(), false
	}
	if line > 0 {
		text = fmt.Sprintf("%s script: %s, on @%s:%d.", text, s.SHA, sourceName, line)
	}
	return wire.AppendError(out, text)
}

// errorText returns the text of an error that nothing has caught, and the line that it comes from, or 0.
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

// lineOf returns the line that runs so many functions above a Go function; 0 is its caller.
func (e *Engine) lineOf(L *lua.LState, level int) int {
	_, place, _ := strings.Cut(L.Where(level+1), ":")
	n, _ := strconv.Atoi(strings.TrimSuffix(place, ":"))
	return n
}

// hook makes an engine a context. gopher-lua has no debug hooks, but asks a context before each instruction whether it is done.
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

// Done counts an instruction. Once a script is to end, it ends at each further instruction, so that it cannot catch that.
func (h hook) Done() <-chan struct{} {
	if h.left--; h.left > 0 {
		return nil
	}
	return h.tick()
}

func (e *Engine) tick() <-chan struct{} {
	if e.ended == nil && e.host != nil {
		if e.ended = e.host.Tick(); e.ended == nil {
			e.ended = e.memory.tick()
		}
	}
	if e.ended != nil || e.broken != nil {
		return done
	}
	e.left = e.untilTick()
	return nil
}

// untilTick is how many instructions may be done before the next tick. Each may compare two texts, or hash one.
func (e *Engine) untilTick() int { return max(1, min(tickEvery, tickBytes/max(1, e.longest))) }

// textOf makes a value of a text that may be longer than those that the script has.
func textOf[T string | []byte](e *Engine, text T) lua.LString {
	e.longest = max(e.longest, len(text))
	return lua.LString(text)
}

var _ context.Context = hook{}

// endBy has the script end at its next instruction.
func (e *Engine) endBy(err error) {
	if e.ended == nil {
		e.ended = err
	}
	e.left = 0
}
