package gate

import (
	"sync"
	"testing"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
)

// Several goroutines change bits of the server's word, each one of its own.
func TestServer(t *testing.T) {
	var g Server
	var all sync.WaitGroup
	for bit := Timed; bit <= Busy; bit <<= 1 {
		all.Go(func() {
			for range 1000 {
				if g.Set(bit, true); !g.Has(bit) {
					t.Errorf("%b is not set", bit)
				}
				if g.Set(bit, false); g.Has(bit) {
					t.Errorf("%b is set", bit)
				}
			}
			g.Set(bit, true)
		})
	}
	all.Wait()
	if g.Load() != Timed|Monitored|Loading|Refusing|Busy || g.Has(Auth) {
		t.Errorf("%b", g.Load())
	}
}

func TestSilent(t *testing.T) {
	for bits, want := range map[Word]bool{0: false, ReplyOff: true, Skip: true, SkipNext: false, Multi | Skip: true} {
		if bits.Silent() != want {
			t.Errorf("%b: %v", bits, !want)
		}
	}
}

// A client that tracks may cache what it reads, and a script's answers. With OPTIN it may only after CLIENT CACHING.
func TestTracked(t *testing.T) {
	get, set, eval := &command.Row{Flags: spec.Readonly}, &command.Row{Flags: spec.Write}, &command.Row{Group: "scripting"}
	for _, test := range []struct {
		g    Word
		t    client.Tracking
		row  *command.Row
		want bool
	}{
		{0, 0, get, false},
		{0, client.Tracks, get, true},
		{0, client.Tracks, set, false},
		{0, client.Tracks, eval, true},
		{0, client.Tracks | client.OptsIn, get, false},
		{Caching, client.Tracks | client.OptsIn, get, true},
		{Caching, client.Tracks | client.OptsIn, set, false},
	} {
		if got := test.g.Tracked(test.t, test.row); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// CLIENT CACHING holds for the next command outside MULTI, and for what other CLIENT commands come before it.
func TestEndCaching(t *testing.T) {
	get, setname := &command.Row{Name: "get"}, &command.Row{Name: "setname", Parent: &command.Row{Name: "client"}}
	sub := &command.Row{Name: "get", Parent: &command.Row{Name: "config"}}
	for _, test := range []struct {
		before, after Word
		row           *command.Row
	}{
		{0, 0, get}, {Caching, 0, get}, {Caching, 0, nil}, {Caching, 0, sub}, {Caching, Caching, setname},
		{Caching | Multi, Caching | Multi, get}, {Caching | Rights, Rights, get},
	} {
		g := test.before
		if g.EndCaching(test.row); g != test.after {
			t.Errorf("%+v: %b", test, g)
		}
	}
}
