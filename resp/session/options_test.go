package session

import (
	"strings"
	"testing"
)

// Options that do not go together, or that a command does not have, are a syntax error, and change nothing.
func TestOptionsThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("SET k 5", "+OK\r\n")
	const syntax = "-ERR syntax error\r\n"
	for _, command := range []string{
		"COPY k to NEW", "COPY k to REPLACE x", "COPY k to DB",
		"SET k 6 NX XX", "SET k 6 XX NX", "SET k 6 EX 5 PX 5", "SET k 6 EX 5 KEEPTTL", "SET k 6 EX", "SET k 6 y",
		"GETEX k EX", "GETEX k EX 5 PERSIST", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOW", "SHUTDOWN ABORT FORCE", "SHUTDOWN x",
	} {
		p.want(command, syntax)
	}
	p.want("GET k", "$1\r\n5\r\n")
	p.want("TTL k", ":-1\r\n")
	p.want("EXISTS to", ":0\r\n")
}

// COMMAND GETKEYS counts arguments as the command itself does.
func TestGetKeys(t *testing.T) {
	p := newWorld(t).connect()
	const args = "-ERR Invalid number of arguments specified for command\r\n"
	for command, want := range map[string]string{
		"GET k":          "*1\r\n$1\r\nk\r\n",
		"GET k l":        args,
		"DEL k":          "*1\r\n$1\r\nk\r\n",
		"DEL k l":        "*2\r\n$1\r\nk\r\n$1\r\nl\r\n",
		"COPY k l":       "*2\r\n$1\r\nk\r\n$1\r\nl\r\n",
		"COPY k":         args,
		"EVAL s 2 k l m": "*2\r\n$1\r\nk\r\n$1\r\nl\r\n",
		"EVAL s 2 k l":   "*2\r\n$1\r\nk\r\n$1\r\nl\r\n",
		"EVAL s 0":       "*0\r\n",
		"EVAL s 0 k":     "*0\r\n",
		"EVAL s 3 k l":   "*0\r\n",
		"PING x":         "-ERR The command has no key arguments\r\n",
		"nothing k":      "-ERR Invalid command specified\r\n",
	} {
		if got := p.do(append([]string{"COMMAND", "GETKEYS"}, strings.Fields(command)...)...); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
