package script

import (
	"errors"
	"fmt"
	"strings"

	"celld/resp/script/plain"
	"celld/resp/script/source"
	"celld/resp/scripts"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// A Compiled script belongs to no engine yet.
type Compiled struct {
	script    scripts.Script
	code      code
	proto     *lua.FunctionProto
	functions int
	err       error
}

// Compile compiles a script, or notes why it cannot. Any goroutine may call it. 64 KB take some 15 ms, and up to 250 with many constants.
func Compile(text []byte) *Compiled {
	c := &Compiled{script: scripts.Script{SHA: SHA1(text)}}
	if len(text) > MaxScript {
		c.err = fmt.Errorf("ERR Error compiling script (new function): %s:1: the script has more than %d bytes", source.Name, MaxScript)
		return c
	}
	var code string
	if code, c.err = shebang(&c.script, string(text)); c.err != nil {
		return c
	}
	see := func(chunk []ast.Stmt) { c.code.plain = plain.Compile(chunk) }
	if c.proto, c.functions, c.err = source.Compile(code, source.Name, see); c.err != nil {
		c.err = fmt.Errorf("ERR Error compiling script (new function): %w", c.err)
	}
	c.code.size = perScript + perByte*len(text) + perFunction*c.functions
	return c
}

// shebang reads a first line such as #!lua flags=no-writes, and returns the script with that line empty.
func shebang(s *scripts.Script, text string) (string, error) {
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
