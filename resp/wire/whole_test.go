package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func texts(args [][]byte) (list []string) {
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}

// Commands as clients write them are read in one pass, up to the limits. Others, and those that are not all there, are left to Next.
func TestWhole(t *testing.T) {
	limits := Limits{MaxArgs: 3, MaxBulk: 12, Authed: true}
	for _, c := range []struct {
		buf  string
		want []string
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
		{"*1\r\n$0\r\n\r\n", []string{""}},
		{"*3\r\n$1\r\na\r\n$2\r\n\r\n\r\n$12\r\n123456789012\r\n", []string{"a", "\r\n", "123456789012"}},
		{"*1\r\n$13\r\n1234567890123\r\n", nil},
		{"*4\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n", nil},
		{"*0\r\n", nil},
		{"*-1\r\n", nil},
		{"*1\r\n$-1\r\n", nil},
		{"*01\r\n$1\r\na\r\n", nil},
		{"*1\r\n$01\r\na\r\n", nil},
		{"*1\r\n:1\r\na\r\n", nil},
		{"+1\r\n$1\r\na\r\n", nil},
		{"*1\n$1\r\na\r\n", nil},
		{"*1\r\r$1\r\na\r\n", nil},
		{"*\r\n$1\r\na\r\n", nil},
		{"*1a\r\n$1\r\na\r\n", nil},
		{"PING\r\n", nil},
	} {
		args, n := Whole([]byte(c.buf+"*1\r\n"), nil, limits)
		if want := len(c.buf); c.want == nil && n != 0 || c.want != nil && (n != want || !slices.Equal(texts(args), c.want)) {
			t.Errorf("%q: %q in %d bytes, want %q", c.buf, texts(args), n, c.want)
		}
		for i := range c.buf {
			if args, n := Whole([]byte(c.buf[:i]), nil, limits); n != 0 {
				t.Errorf("%q: %q in %d bytes", c.buf[:i], texts(args), n)
			}
		}
	}
	if args, n := Whole([]byte("*1\r\n$4\r\nPING\r\n"), nil, Limits{MaxArgs: 3, MaxBulk: 12}); n != 0 {
		t.Errorf("a peer that has not authenticated: %q", texts(args))
	}
}

func TestReadLength(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "1": 1, "9": 9, "10": 10, "907": 907, "999999": 999_999, "1000000": -1, "": -1, "00": -1, "07": -1, "-1": -1, "+1": -1,
		"/": -1, ":": -1, "1:": -1, "1/": -1,
	} {
		for _, before := range []string{"", "*", "$$$"} {
			length, next, ok := ReadLength([]byte(before+text+"\r\n"), len(before))
			if ok != (want >= 0) || ok && (length != want || next != len(before)+len(text)+2) {
				t.Errorf("%q behind %q: %d, %d, %v", text, before, length, next, ok)
			}
			for _, end := range []string{"", "\r", "\n", "\r\r", "\n\n", "x\n", "\rx"} {
				if length, _, ok := ReadLength([]byte(before+text+end), len(before)); ok {
					t.Errorf("%q with end %q: %d", text, end, length)
				}
			}
		}
	}
}

// Whatever Whole reads, Next reads alike without it.
func TestWholeReadsAsNextDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fast := 0
	for range 20_000 {
		words := make([]string, 1+random.IntN(5))
		for i := range words {
			words[i] = strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(130))
		}
		buf := AppendCommand(nil, words...)
		for range random.IntN(3) { // and what is nearly one
			buf[random.IntN(len(buf))] = "\r\n*$0129/:- "[random.IntN(11)]
		}
		buf = append(buf, "*1\r\n"...)
		args, n := Whole(buf, nil, Limits{MaxArgs: 5, MaxBulk: 120, Authed: true})
		if n == 0 {
			continue
		}
		fast++
		var r FrameReader
		slow, m, err := r.Next(buf, nil, Limits{MaxArgs: 5, MaxBulk: 120})
		if err != nil || m != n || !slices.Equal(texts(slow), texts(args)) {
			t.Fatalf("%q is %q in %d bytes, and by Next %q in %d: %v", buf, texts(args), n, texts(slow), m, err)
		}
	}
	if fast < 5000 {
		t.Error(fmt.Sprint("only ", fast, " were read in one pass"))
	}
}

// A reader says whether a command is under way.
func TestIdle(t *testing.T) {
	limits := Limits{MaxArgs: 1000, MaxBulk: 100, Authed: true}
	var r FrameReader
	if !r.Idle() {
		t.Error("a new reader is at work")
	}
	for _, whole := range []string{"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", "PING\r\n"} {
		for i := range len(whole) {
			if _, n, err := r.Next([]byte(whole[:i]), nil, limits); n != 0 || err != nil || r.Idle() != (i == 0) {
				t.Errorf("%q: %d, %v, idle %v", whole[:i], n, err, r.Idle())
			}
		}
		if _, n, err := r.Next([]byte(whole), nil, limits); n != len(whole) || err != nil || !r.Idle() {
			t.Errorf("%q: %d, %v, idle %v", whole, n, err, r.Idle())
		}
	}
}

// An unfinished command takes no memory beside its bytes, however many arguments it has.
func TestUnfinishedCommandsTakeTheirBytes(t *testing.T) {
	limits := Limits{MaxArgs: 1 << 20, MaxBulk: 100, Authed: true}
	many := []byte("*1000000\r\n" + strings.Repeat("$1\r\na\r\n", 900_000))
	if n := testing.AllocsPerRun(1, func() {
		var r FrameReader
		for i := 0; i < len(many); i += 16 << 10 {
			if _, n, err := r.Next(many[:i], nil, limits); n != 0 || err != nil {
				t.Error(n, err)
			}
		}
	}); n > 1 { // of a number
		t.Errorf("%v allocations", n)
	}
}

func TestAppendInt(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1000, -100, -99, -10, -9, -1, 0, 1, 9, 10, 11, 42, 99, 100, 101, 120, 999, 1000, 1203, 9999,
		10_000, math.MaxInt64} {
		if got, want := string(AppendInt([]byte("x"), n)), fmt.Sprintf("x:%d\r\n", n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
