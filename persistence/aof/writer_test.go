package aof

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"celld/cell"
	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"

	"pgregory.net/rapid"
)

// A stamp holds its time, and shows whether the bytes before it are damaged.
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
	for _, text := range []string{"", " ", "5", "5 ", "5 0123456789abcde", "5 0123456789abcdefg", "x 0123456789abcdef", " 0123456789abcdef",
		"5  123456789abcdef", "5 0123456789abcdef 5", "9223372036854775808 0123456789abcdef"} {
		if _, ok, _ := parseStamp([]byte(text), func() uint64 { return 0 }); ok {
			t.Errorf("%q is taken for a stamp", text)
		}
	}
}

// ParseCommand reads the same words that AppendChange writes.
func TestCommandText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		st := rdb.WithExpiry(store.Value{TAT: rapid.Uint64Min(1).Draw(t, "tat")}, rapid.Int64Range(-1, math.MaxInt64).Draw(t, "ms"))
		if rapid.Bool().Draw(t, "counts") {
			st = rdb.WithExpiry(store.Value{Count: rapid.Int64().Draw(t, "count")}, rapid.Int64Range(-1, math.MaxInt64).Draw(t, "ms"))
		}
		var set []string
		set = append(set, "SET", string(key), string(st.AppendInteger(nil)))
		if at := rdb.ExpiryMS(st); at >= 0 {
			set = append(set, "PXAT", fmt.Sprint(at))
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

// words returns the commands of a text, one a line, with ~ for each blank.
func words(t *testing.T, text []byte) (all string) {
	t.Helper()
	for len(text) > 0 {
		args, n, what := ParseCommand(text, nil)
		if n == 0 || what != "" {
			t.Fatalf("%q: %s", text, what)
		}
		for _, arg := range args {
			all += strings.ReplaceAll(string(arg), " ", "~") + " "
		}
		all, text = strings.TrimSpace(all)+"\n", text[n:]
	}
	return all
}

// A key with limits is written with its logs in parts. Only the new calls of a log are written if the file holds the
// others.
func TestHashText(t *testing.T) {
	const t0 = 1_700_000_000_000_000_000
	s := memory.New(memory.Options{Journal: true})
	now := int64(t0)
	take := func(n int, limits ...string) {
		t.Helper()
		var calls []store.Call
		for _, text := range limits {
			l, err := cell.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, store.Call{Key: []byte("k"), Limit: &l})
		}
		for range n {
			if _, err := s.Take(calls, store.TakeOptions{Cost: 1}, store.Access{NowNS: now}); err != nil {
				t.Fatal(err)
			}
			now++
		}
	}
	written := func() (text string) {
		for more := true; more; {
			more = s.Drain(func(c memory.Change) { text += words(t, AppendChange(nil, c)) })
		}
		return text
	}
	calls := func(n int) string { return strings.Repeat(",+1:1", n) }
	take(1, "5/1h,algo=window", "5/1h")
	if got, want := written(), "DEL k\nHSET k gcra/1h limit=5/1h~tat=1700000720000000000"+
		" window/1h limit=5/1h,algo=window~until=1700003600000000000~used=1\nPEXPIREAT k 1700003600000\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Delete([]byte("k"), now)
	if got := written(); got != "DEL k\n" {
		t.Error(got)
	}
	now = t0
	const log = "300/1h,algo=log"
	take(100, log)
	want := "DEL k\n" +
		"HSET k log/1h~0 limit=300/1h,algo=log~after=0~calls=1700000000000000000:1" + calls(63) +
		" log/1h~1 limit=300/1h,algo=log~after=1700000000000000063~calls=1700000000000000064:1" + calls(35) +
		"\nPEXPIREAT k 1700003600001\n"
	if got := written(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	take(1, log)
	want = "HSET k log/1h~1 limit=300/1h,algo=log~after=1700000000000000063~calls=1700000000000000064:1" + calls(36) +
		"\nPEXPIREAT k 1700003600001\n"
	if got := written(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	limits := store.Limits{}
	for _, test := range []struct {
		st   store.Value
		want string
	}{
		{store.Value{HoldsLimits: true, Limits: &limits}, "DEL k\n"},
		{store.Value{TAT: 5, ExpiryNS: 1}, "SET k 5 PXAT 1\n"},
		{store.Value{Count: 5, ExpiryNS: store.NoExpiry}, "SET k 5\n"},
		{store.Value{TAT: 0}, "SET k 0 PXAT 0\n"},
	} {
		if got := words(t, AppendState(nil, []byte("k"), test.st)); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	p := policy.Setting{Kind: policy.PolicySetting, Name: "p"}
	if got := words(t, AppendSetting(nil, p, SettingGone)); got != "ECHO celld-policy~-~p\n" {
		t.Error(got)
	}
	if got := AppendChange(nil, memory.Change{Lost: true}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
