package aof

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store/memory"

	"pgregory.net/rapid"
)

// A stamp has its time and notices what is wrong with the bytes before it.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		nowNS := rapid.Int64().Draw(t, "now")
		crc := source.Checksum(0, before)
		b := AppendStamp(bytes.Clone(before), nowNS, crc)
		args, n, what := ParseCommand(b[len(before):], nil)
		if n != len(b)-len(before) || what != "" || !bytes.HasPrefix(b, before) {
			t.Fatalf("%q: %d bytes, %s", b, n, what)
		}
		if ns, ok, good := stampOf(args, func() uint64 { return crc }); ns != nowNS || !ok || !good {
			t.Errorf("%q: %d, %v, %v", b, ns, ok, good)
		}
		if _, ok, good := stampOf(args, func() uint64 { return crc ^ 1<<rapid.IntRange(0, 63).Draw(t, "bit") }); !ok || good {
			t.Errorf("%q: a wrong checksum is not noticed", b)
		}
	})
	for _, text := range []string{"", " ", "5", "5 ", "5 0123456789abcde", "5 0123456789abcdefg", "x 0123456789abcdef", " 0123456789abcdef", "5  123456789abcdef", "5 0123456789abcdef 5", "9223372036854775808 0123456789abcdef"} {
		if _, ok, _ := parseStamp([]byte(text), func() uint64 { return 0 }); ok {
			t.Errorf("%q is taken for a stamp", text)
		}
	}
}

// What AppendChange writes is read as the same words.
func TestCommandText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		st := rdb.StateOf(rapid.Uint64().Draw(t, "tat"), rapid.Int64Range(-1, math.MaxInt64).Draw(t, "ms"))
		var set []string
		set = append(set, "SET", string(key), string(rdb.AppendTAT(nil, st.TAT)))
		if at := rdb.ExpiryMS(st); at >= 0 {
			set = append(set, "PXAT", string(rdb.AppendTAT(nil, uint64(at))))
		}
		for _, c := range []struct {
			text []byte
			want []string
		}{
			{AppendChange(nil, memory.Change{Key: key, State: st}), set},
			{AppendChange(nil, memory.Change{Key: key, Deleted: true}), []string{"DEL", string(key)}},
			{AppendChange(nil, memory.Change{Flush: true}), []string{"FLUSHALL"}},
		} {
			args, n, what := ParseCommand(c.text, nil)
			if n != len(c.text) || what != "" || string(bytes.Join(args, []byte{0})) != strings.Join(c.want, "\x00") {
				t.Errorf("%q: %q, %s", c.text, args, what)
			}
			for cut := range c.text {
				if args, n, what := ParseCommand(c.text[:cut], nil); n != 0 || what != "" {
					t.Fatalf("%q: %q, %d, %s", c.text[:cut], args, n, what)
				}
			}
		}
	})
}
