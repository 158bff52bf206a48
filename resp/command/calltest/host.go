// Package calltest runs the commands of a family in tests, on a store in memory, without a session or a server.
//
//	h := calltest.New(memory.Options{}, keys.Rows(keys.Options{})...)
//	reply := h.Do("GET", "k")
package calltest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/store"
	"celld/store/memory"
)

// Host runs each command whole, one after the other, with all rights.
type Host struct {
	Store  *memory.Store
	NowNS  int64 // limit time, which tests set
	RESP3  bool
	InExec bool // as if a transaction ran the commands
	Most   int  // bytes of output; 0: 1 GB
	Own    *Own // the connection of whoever calls; nil: calls are made within the process

	table *command.Table
	call  command.Call
}

// New returns a host at the start of the year 2026, with an empty store.
func New(o memory.Options, rows ...*command.Row) *Host {
	h := &Host{Store: memory.New(o), NowNS: 1_767_225_600e9, table: command.NewTable(rows, func() any { return nil })}
	h.call.Host = h
	return h
}

// As makes another host, which has h in it, that of the commands.
func (h *Host) As(other command.Host) { h.call.Host = other }

// Do runs a command, whose number of arguments it does not check, and returns the reply.
func (h *Host) Do(words ...string) (reply string) {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	c := &h.call
	c.Row, c.Args, c.NowNS, c.RESP3, c.Out = h.table.FindCall(args), args, h.NowNS, h.RESP3, nil
	c.Row.Run(c)
	return string(c.Out)
}

// Wants runs commands, each a line, and compares their replies. One that begins with a capital letter is an error's text.
func (h *Host) Wants(t testing.TB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		want := pairs[i+1]
		if want != "" && 'A' <= want[0] && want[0] <= 'Z' {
			want = "-" + want + "\r\n"
		}
		if got := h.Do(strings.Fields(pairs[i])...); got != want {
			t.Errorf("%s:\n got %q\nwant %q", pairs[i], got, want)
		}
	}
}

// The methods of command.Host.

func (h *Host) Keys() command.Keys                     { return h.Store }
func (h *Host) Access() store.Access                   { return store.Access{NowNS: h.NowNS} }
func (h *Host) Inside() bool                           { return h.InExec }
func (h *Host) MayOffload() bool                       { return !h.InExec }
func (h *Host) Shared(_ store.Access, do func())       { do() }
func (h *Host) Once(effect func())                     { effect() }
func (h *Host) Alone(do func())                        { do() }
func (h *Host) Did(int, int)                           {}
func (h *Host) CountDecisions()                        {}
func (h *Host) LeaseEnds(int64, int64)                 {}
func (h *Host) MostOutput() int                        { return cmp.Or(h.Most, 1<<30) }
func (h *Host) OverOutput(bytes int) bool              { return bytes > h.MostOutput() }
func (h *Host) TypeOf(_ []byte, st store.Value) string { return st.Type() }

// ErrorText knows only the error of a full store.
func (h *Host) ErrorText(err error) string {
	if errors.Is(err, store.ErrFull) {
		return command.ErrOOM
	}
	return "ERR " + err.Error()
}

// Offload does the work at once.
func (h *Host) Offload(_ bool, begin func([][]byte) command.Work) { begin(h.call.Args)()(&h.call) }

// Later answers as soon as done is called.
func (h *Host) Later(begin func(context.Context, func(func(*command.Call)))) {
	begin(context.Background(), func(reply func(*command.Call)) { reply(&h.call) })
}

// Connection is Own.
func (h *Host) Connection() command.Connection {
	if h.Own == nil {
		return nil
	}
	return h.Own
}

// InSteps does all steps at once.
func (h *Host) InSteps(step command.Step) {
	for step(&h.call) { //nolint:revive // it does all
	}
}
