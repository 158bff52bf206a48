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
	"celld/resp/scripts"
	"celld/resp/wire"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	lua "github.com/yuin/gopher-lua"
)

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

// code is a compiled script.
type code struct {
	fn    *lua.LFunction
	plain *plain.Program // nil: it needs the interpreter
	size  int
}

func codeOf(s *scripts.Script) *code { return s.Code.(*code) }

// Engine is a scripts.Engine.
type Engine struct {
	box     *sandbox.Sandbox
	scripts *simplelru.LRU[string, *scripts.Script]
	faulty  *simplelru.LRU[string, error] // why the last few that do not compile do not, by SHA1
	bytes   int

	// Of the run.
	budget  budget.Budget
	machine plain.Machine
	result  *plain.Result // of a plain script; nil: the value is on the interpreter's stack
	host    scripts.Host
	script  *scripts.Script
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
	e.scripts, _ = simplelru.NewLRU(cachedBytes/perScript, func(_ string, s *scripts.Script) { e.bytes -= codeOf(s).size })
}

// SHA1 returns the name of a script: the SHA-1 of its text, in lower-case hexadecimal.
func SHA1(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// Get is scripts.Engine's, as are Has, Knows, Flush, Compile, Load, Run, AppendReply and PassedOn.
func (e *Engine) Get(sha string) (*scripts.Script, bool) {
	if s, ok := e.scripts.Get(sha); ok || len(sha) != 2*sha1.Size {
		return s, ok
	}
	return e.scripts.Get(strings.ToLower(sha))
}

func (e *Engine) Has(sha string) bool { return e.scripts.Contains(strings.ToLower(sha)) }

func (e *Engine) Knows(text []byte) bool {
	if len(text) > MaxScript {
		return true
	}
	sha := SHA1(text)
	return e.scripts.Contains(sha) || e.faulty.Contains(sha)
}

func (e *Engine) Flush() {
	e.scripts.Purge()
	e.faulty.Purge()
}

// Kept returns the number of scripts, and their estimated size in bytes.
func (e *Engine) Kept() (scripts, bytes int) { return e.scripts.Len(), e.bytes }

// Keep keeps a compiled script. The least recently used scripts make room. The error is Redis's text for the reply. Keep may be called
// once for each Compiled.
func (e *Engine) Keep(c *Compiled) (*scripts.Script, error) {
	if c.err != nil {
		e.faulty.Add(c.script.SHA, c.err)
		return nil, c.err
	}
	if s, ok := e.scripts.Get(c.script.SHA); ok {
		return s, nil
	}
	s, err := &c.script, error(nil)
	if c.code.fn, err = e.box.Function(c.proto, source.Name); err != nil {
		err = fmt.Errorf("ERR Error compiling script (new function): %w", err)
		e.faulty.Add(s.SHA, err)
		return nil, err
	}
	s.Code = &c.code
	e.bytes += c.code.size
	e.scripts.Add(s.SHA, s)
	for e.bytes > cachedBytes {
		e.scripts.RemoveOldest()
	}
	return s, nil
}

func (e *Engine) Compile(text []byte) (keep func() error) {
	c := Compile(text)
	return func() error {
		_, err := e.Keep(c)
		return err
	}
}

func (e *Engine) Load(text []byte) (*scripts.Script, error) {
	sha := SHA1(text)
	if s, ok := e.scripts.Get(sha); ok {
		return s, nil
	}
	if err, ok := e.faulty.Get(sha); ok {
		return nil, err
	}
	return e.Keep(Compile(text))
}

// Run lets a panic in Host.Call end the script and come out, even if the script catches errors.
func (e *Engine) Run(s *scripts.Script, host scripts.Host, keys, args [][]byte) {
	code := codeOf(s)
	e.box.L.SetTop(0)
	e.script, e.host, e.resp3, e.broken, e.counted, e.result = s, host, false, nil, false, nil
	if code.plain != nil && plain.Fit(keys, args) {
		e.result, e.failure = e.machine.Run(code.plain, (*plainHost)(e), keys, args)
		return
	}
	keyTable, longestKey := e.stringTable(keys)
	argTable, longest := e.stringTable(args)
	e.budget.Start(host, max(longestKey, longest))
	e.box.Globals.RawSetString("KEYS", keyTable)
	e.box.Globals.RawSetString("ARGV", argTable)
	e.failure = e.box.Run(code.fn)
	if e.broken != nil {
		panic(e.broken)
	}
}

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
func (e *Engine) appendFailure(out []byte, s *scripts.Script, err error) []byte {
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
