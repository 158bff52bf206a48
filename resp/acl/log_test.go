package acl

import (
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	var l Log
	add := func(object string, atS int64) {
		l.Add(Entry{Reason: DeniedKey, Context: "toplevel", Object: object, Username: "a", AtNS: atS * 1e9, Client: object}, 12)
	}
	counts := func() string {
		var b strings.Builder
		for _, e := range l.Last(100) {
			b.WriteString(e.Object)
			b.WriteByte(byte('0' + e.Count))
		}
		return b.String()
	}
	add("x", 0)
	add("y", 1)
	add("x", 60)
	if got := counts(); got != "x2y1" {
		t.Error("within a minute: ", got)
	}
	add("x", 121)
	if got := counts(); got != "x1x2y1" {
		t.Error("after a minute: ", got)
	}
	for i := range 10 {
		add(string(rune('a'+i)), 122)
	}
	if got := counts(); got != "j1i1h1g1f1e1d1c1b1a1x1x2" {
		t.Error("the oldest goes: ", got)
	}
	add("x", 122)
	if got := counts(); !strings.HasPrefix(got, "x1j1") {
		t.Error("only the last ten are looked at: ", got)
	}
	if got := l.Last(1); len(got) != 1 || len(l.Last(-1)) != 0 {
		t.Error(got)
	}
	l.Add(Entry{Object: strings.Repeat("k", 5000), Username: strings.Repeat("u", 1025)}, 12)
	if e := l.Last(1)[0]; len(e.Object) > 1100 || !strings.HasSuffix(e.Object, "... (3976 more bytes)") ||
		!strings.HasSuffix(e.Username, "... (1 more bytes)") {
		t.Errorf("%d bytes, %d bytes", len(e.Object), len(e.Username))
	}
	l.Add(Entry{}, 0)
	if l.Reset(); len(l.Last(10)) != 0 {
		t.Error(l.Last(10))
	}
}
