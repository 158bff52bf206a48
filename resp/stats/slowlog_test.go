package stats

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/calltest"
	"celld/store/memory"
)

func TestSlowlog(t *testing.T) {
	most := int64(3)
	l := NewSlowlog(func() int64 { return most })
	ids := func(entries []SlowEntry) (list []int64) {
		for _, e := range entries {
			list = append(list, e.ID*10+e.US)
		}
		return list
	}
	for i := range int64(5) {
		l.Add(SlowEntry{ID: 99, US: i})
	}
	for n, want := range map[int64][]int64{-1: {44, 33, 22}, 0: nil, 2: {44, 33}, 3: {44, 33, 22}, 9: {44, 33, 22}} {
		if got := ids(l.Last(n)); !slices.Equal(got, want) {
			t.Errorf("the last %d: %v, want %v", n, got, want)
		}
	}
	most = 1
	l.Add(SlowEntry{US: 5})
	if got := ids(l.Last(-1)); !slices.Equal(got, []int64{55}) {
		t.Error(got)
	}
	if l.Reset(); len(l.Last(-1)) > 0 {
		t.Error("a reset forgets nothing")
	}
	if l.Add(SlowEntry{US: 6}); l.Last(1)[0].ID != 6 {
		t.Error("IDs begin anew")
	}
}

func TestTrimArgs(t *testing.T) {
	arg := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	got, want := TrimArgs(3, slices.All([][]byte{[]byte("GET"), arg(128), arg(130)})),
		[]string{"GET", string(arg(128)), string(arg(128)) + "... (2 more bytes)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{32: "x", 33: "... (2 more arguments)", 1000: "... (969 more arguments)"} {
		if got := TrimArgs(n, slices.All(slices.Repeat([][]byte{arg(1)}, n))); len(got) != 32 || got[31] != want {
			t.Error(n, fmt.Sprintf("%q", got))
		}
	}
}

// SLOWLOG's answers.
func TestSlowlogRows(t *testing.T) {
	log := NewSlowlog(func() int64 { return 100 })
	host := calltest.New(memory.Options{}, &command.Row{Name: "slowlog", Sub: log.Rows()})
	for i := range int64(12) {
		log.Add(SlowEntry{UnixS: 100 + i, US: 200 + i, Args: []string{"GET", "k"}, Addr: "a:1", Name: "me"})
	}
	entry := func(i int) string {
		return fmt.Sprintf("*6\r\n:%d\r\n:%d\r\n:%d\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n$3\r\na:1\r\n$2\r\nme\r\n", i, 100+i, 200+i)
	}
	ten := "*10\r\n"
	for i := 11; i > 1; i-- {
		ten += entry(i)
	}
	for _, test := range [][2]string{
		{"LEN", ":12\r\n"}, {"GET", ten}, {"GET 1", "*1\r\n" + entry(11)}, {"GET 0", "*0\r\n"},
		{"GET -1", "*12\r\n" + entry(11) + entry(10) + ten[len("*10\r\n")+2*len(entry(10)):] + entry(1) + entry(0)},
		{"GET -2", "-" + ErrSlowlogCount + "\r\n"}, {"GET x", "-" + ErrSlowlogCount + "\r\n"},
		{"GET 1 2", "-" + fmt.Sprintf(command.ErrArity, "slowlog|get") + "\r\n"}, {"RESET", "+OK\r\n"}, {"LEN", ":0\r\n"},
	} {
		if got := host.Do(append([]string{"SLOWLOG"}, strings.Fields(test[0])...)...); got != test[1] {
			t.Errorf("%s: %q, want %q", test[0], got, test[1])
		}
	}
}
