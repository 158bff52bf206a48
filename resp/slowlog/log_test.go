package slowlog

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestLog(t *testing.T) {
	most := int64(3)
	l := New(func() int64 { return most })
	ids := func(entries []Entry) (list []int64) {
		for _, e := range entries {
			list = append(list, e.ID*10+e.US)
		}
		return list
	}
	for i := range int64(5) {
		l.Add(Entry{ID: 99, US: i})
	}
	for n, want := range map[int64][]int64{-1: {44, 33, 22}, 0: nil, 2: {44, 33}, 3: {44, 33, 22}, 9: {44, 33, 22}} {
		if got := ids(l.Last(n)); !slices.Equal(got, want) {
			t.Errorf("the last %d: %v, want %v", n, got, want)
		}
	}
	most = 1
	l.Add(Entry{US: 5})
	if got := ids(l.Last(-1)); !slices.Equal(got, []int64{55}) {
		t.Error(got)
	}
	if l.Reset(); len(l.Last(-1)) > 0 {
		t.Error("a reset forgets nothing")
	}
	if l.Add(Entry{US: 6}); l.Last(1)[0].ID != 6 {
		t.Error("IDs begin anew")
	}
}

func TestTrim(t *testing.T) {
	arg := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	if got, want := Trim([][]byte{[]byte("GET"), arg(128), arg(130)}), []string{"GET", string(arg(128)), string(arg(128)) + "... (2 more bytes)"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{32: "x", 33: "... (2 more arguments)", 1000: "... (969 more arguments)"} {
		if got := Trim(slices.Repeat([][]byte{arg(1)}, n)); len(got) != 32 || got[31] != want {
			t.Error(n, fmt.Sprintf("%q", got))
		}
	}
}
