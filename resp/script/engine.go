package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"celld/resp/script/budget"
	"celld/resp/script/plain"
	"celld/resp/script/sandbox"
	"celld/resp/script/source"
	"celld/resp/script/value"
	"celld/resp/wire"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	lua "github.com/yuin/gopher-lua"
)

// Host runs the commands of a script.
type Host interface {
	budget.Host
	// Call runs a command and returns its reply as RESP. The arguments are valid during the call, the reply until the next one.
	Call(args [][]byte) (reply []byte)
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

	cachedBytes  = 16 << 20 // bound on all scripts that are kept, by estimate
	mostFaulty   = 16
	perScript    = 2 << 10
	perByte      = 10 // of text: 1 to 9 were measured
	perFunction  = 1 << 10
	maxReplyDeep = 1000
)

// A Script is a compiled script. Only the Engine that compiled it can run it.
type Script struct {
	SHA      string // in lower case
	ReadOnly bool   // its first line says flags=no-writes
	fn       *lua.LFunction
	plain    *plain.Program // nil: it needs the interpreter
	size     int
}

// Engine compiles, keeps and runs scripts. Its methods, and those of its Scripts, are for one goroutine at a time.
type Engine struct {
	box     *sandbox.Sandbox
	scripts *simplelru.LRU[string, *Script]
	faulty  *simplelru.LRU[string, error] // why the last few that do not compile do not, by SHA1
	bytes   int

	// Of the run.
	budget  budget.Budget
	machine plain.Machine
	result  *plain.Result // of a plain script; nil: the value is on the interpreter's stack
	host    Host
	script  *Script
	failure error
	resp3   bool // what redis.setresp asked for
	broken  any  // a panic of a command
	counted bool // the reply is an error that a command has answered
	argText []byte
	args    [][]byte
	writer  replyWriter // with ofPlain, here as they would be allocated otherwise
	ofPlain plainWriter
}

// NewEngine returns an engine without scripts.
func NewEngine() *Engine {
	e := &Engine{}
	e.open()
	return e
}

// open makes a new interpreter and forgets all scripts.
func (e *Engine) open() {
	e.bytes = 0
	e.box = sandbox.New(&e.budget, e.redisLibrary)
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
	if s.fn, err = e.box.Function(c.proto, source.Name); err != nil {
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

// Run runs a script. AppendReply then gives its reply.
//
// A panic in Host.Call ends the script and comes out of Run, even if the script catches errors.
func (e *Engine) Run(s *Script, host Host, keys, args [][]byte) {
	e.box.L.SetTop(0)
	e.script, e.host, e.resp3, e.broken, e.counted, e.result = s, host, false, nil, false, nil
	if s.plain != nil && plain.Fit(keys, args) {
		e.result, e.failure = e.machine.Run(s.plain, (*plainHost)(e), keys, args)
		return
	}
	keyTable, longestKey := e.stringTable(keys)
	argTable, longest := e.stringTable(args)
	e.budget.Start(host, max(longestKey, longest))
	e.box.Globals.RawSetString("KEYS", keyTable)
	e.box.Globals.RawSetString("ARGV", argTable)
	e.failure = e.box.Run(s.fn)
	if e.broken != nil {
		panic(e.broken)
	}
}

// AppendReply appends the reply of the last Run to out, in RESP 2 or 3. Call it once after each Run.
func (e *Engine) AppendReply(out []byte, resp3 bool) []byte {
	if e.failure != nil {
		out = e.appendFailure(out, e.script, e.failure)
	} else {
		w := &e.writer
		*w = replyWriter{e: e, resp3: resp3, start: len(out)}
		if e.result != nil {
			out = w.appendResult(out, e.result)
		} else {
			out = w.append(out, e.box.L.Get(-1), 0)
		}
		if w.full {
			out = wire.AppendError(out[:w.start], budget.ErrMemory.Error())
		}
	}
	e.box.L.SetTop(0)
	e.budget.Stop()
	e.host, e.failure, e.result = nil, nil, nil
	if e.box.Worn {
		e.open()
	}
	return out
}

// PassedOn says whether the last reply is an error of a command of the script. That command has already counted it.
func (e *Engine) PassedOn() bool { return e.counted }

// stringTable makes a list of texts, and tells the length of the longest.
func (e *Engine) stringTable(list [][]byte) (t *lua.LTable, longest int) {
	t = e.box.L.CreateTable(len(list), 0)
	for i, text := range list {
		t.RawSetInt(i+1, lua.LString(text))
		longest = max(longest, len(text))
	}
	return t, longest
}

// appendFailure appends the error that ended a script, with the script's name and line, in Redis's words.
func (e *Engine) appendFailure(out []byte, s *Script, err error) []byte {
	text, line := "ERR "+err.Error(), 0
	var api *lua.ApiError
	if errors.As(err, &api) {
		text, line = e.errorText(api.Object)
	}
	if ended := e.budget.Ended(); ended != nil { // the script may have changed its text
		text, e.counted = ended.Error(), false
	}
	if line > 0 {
		text = fmt.Sprintf("%s script: %s, on @%s:%d.", text, s.SHA, source.Name, line)
	}
	return wire.AppendError(out, text)
}

// errorText returns the text of an uncaught error, and its line, or 0.
func (e *Engine) errorText(object lua.LValue) (text string, line int) {
	if t, ok := object.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			line, ok := t.RawGetString("line").(lua.LNumber)
			if !ok {
				line = lua.LNumber(e.box.Line)
			}
			e.counted = lua.LVAsBool(t.RawGetString(countedField))
			return string(text), int(line)
		}
		return "ERR unknown error", e.box.Line // redis-server 7.0 dies of it
	}
	text = value.String(object)
	if place, found := strings.CutPrefix(text, source.Name+":"); found {
		digits, _, _ := strings.Cut(place, ":")
		if n, err := strconv.Atoi(digits); err == nil {
			return "ERR " + text, n
		}
	}
	return "ERR " + text, e.box.Line
}
