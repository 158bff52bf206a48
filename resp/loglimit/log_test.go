package loglimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A line that peers can repeat is logged once a second, and the last one always.
func TestSeldom(t *testing.T) {
	var out bytes.Buffer
	nowNS := int64(1e18)
	log := New(slog.New(slog.NewTextHandler(&out, nil)), func() int64 { return nowNS })
	want := func(lines ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			got = nil
		}
		if len(got) != len(lines) {
			t.Fatalf("%d lines, want %d:\n%s", len(got), len(lines), out.String())
		}
		for i, line := range lines {
			if !strings.HasSuffix(got[i], line) {
				t.Errorf("line %q, want ... %q", got[i], line)
			}
		}
		out.Reset()
	}
	for i := range 1000 {
		log.WarnLimited("trouble", "client", i)
		log.WarnLimited("distress", "client", i)
		log.Flush()
	}
	want("msg=trouble client=0", "msg=distress client=0")
	nowNS += 999e6
	log.Flush()
	want()
	nowNS += 1e6
	log.WarnLimited("trouble", "client", "last")
	want("msg=trouble client=last left_out=999")
	log.Flush()
	want("msg=distress client=999 left_out=998")
	nowNS += 1000e6
	log.Flush()
	want()
	log.WarnLimited("trouble", "client", "new")
	want("msg=trouble client=new")
}

// Of a kind that may have several lines a second, the first are logged.
func TestBounded(t *testing.T) {
	var out bytes.Buffer
	nowNS := int64(0)
	log := New(slog.New(slog.NewTextHandler(&out, nil)), func() int64 { return nowNS })
	for second := range 3 {
		for i := range 100 {
			log.Bounded(10, "kind", slog.LevelInfo, "text", "n", i)
		}
		nowNS += 1e9
		log.Flush()
		// its last line is the first of the next second
		if n, want := strings.Count(out.String(), "level=INFO msg=text"), 11+10*second; n != want {
			t.Fatalf("%d lines after %d s, want %d:\n%s", n, second+1, want, out.String())
		}
		if want := fmt.Sprintf("n=99 left_out=%d\n", 89+min(second, 1)); !strings.HasSuffix(out.String(), want) {
			t.Errorf("it does not end in %s:\n%s", want, out.String())
		}
	}
}
