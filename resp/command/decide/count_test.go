package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/store"
)

const (
	maxInt, minInt = "9223372036854775807", "-9223372036854775808"
	largestCount   = "999999999999999"
)

// held is what a key holds, in words: its integer, and the ms that it has to live, if it has an expiry. "": there is no such key.
func (w *world) held(key string) string {
	st, ok := w.Store.Get([]byte(key), store.Access{NowNS: w.NowNS, NoTouch: true})
	switch {
	case !ok:
		return ""
	case st.HoldsLimits:
		return "limits"
	case st.Expiry() == store.NoExpiry:
		return string(st.AppendInteger(nil))
	}
	return fmt.Sprintf("%s for %d", st.AppendInteger(nil), (st.Expiry()-w.NowNS)/1e6)
}

// hold makes a key hold that.
func (w *world) hold(key, words string) {
	w.t.Helper()
	text, ms, expires := strings.Cut(words, " for ")
	st, ok := store.ParseInteger([]byte(text), w.NowNS)
	switch {
	case words == "":
		return
	case words == "limits":
		w.do("CL.TAKE", key, "5/1m")
		return
	case !ok:
		w.t.Fatalf("%q", words)
	}
	if st.ExpiryNS = store.NoExpiry; expires {
		n, _ := argument.ParseInt([]byte(ms))
		st.ExpiryNS = w.NowNS + n*1e6
	}
	_ = w.Store.Update([]byte(key), w.Access(), func(store.Value, bool) (store.Value, bool) { return st, true })
}

// INCR and its kin add to what a key holds, with Redis's errors.
func TestIncr(t *testing.T) {
	for _, test := range []struct{ before, call, reply, after string }{
		{"", "INCR", "1", "1"},
		{"", "DECR", "-1", "-1"},
		{"", "INCRBY 0", "0", "0"},
		{"", "INCRBY -7", "-7", "-7"},
		{"", "DECRBY -7", "7", "7"},
		{"5 for 900", "INCR", "6", "6 for 900"},
		{"-3", "INCRBY 10", "7", "7"},
		{"5", "INCRBY 1.5", argument.ErrNotInteger, "5"},
		{"5", "INCRBY 05", argument.ErrNotInteger, "5"},
		{"5", "DECRBY x", argument.ErrNotInteger, "5"},
		{"5", "INCRBY 9223372036854775808", argument.ErrNotInteger, "5"},
		{"5", "DECRBY " + minInt, errDecrement, "5"},
		{largestCount, "INCR", "ERR increment or decrement would overflow", largestCount},
		{largestCount, "DECR", "999999999999998", "999999999999998"},
		{"1", "INCRBY " + maxInt, "ERR increment or decrement would overflow", "1"},
		{minInt, "DECR", "ERR increment or decrement would overflow", minInt},
		{minInt, "INCRBY 1000000000000000", "-9222372036854775808", "-9222372036854775808"},
		{"1700000000000000 for 900", "INCRBY 5", "1700000000000005", "1700000000000005 for 900"}, // a time in µs
		{"1767225610000000000 for 10000", "INCRBY 1000000000", "1767225611000000000", "1767225611000000000 for 10000"},
		{"1767225610000000000", "DECRBY 1767225610000000000", "0", "0"},
		{maxInt, "INCR", "ERR increment or decrement would overflow", maxInt},
		{"18446744073709551615", "DECR", argument.ErrNotInteger, "18446744073709551615"},
		{"limits", "INCR", "ERR " + store.ErrWrongType.Error(), "limits"},
	} {
		w := newWorld(t)
		w.hold("k", test.before)
		words := strings.Fields(test.call)
		reply := ":" + test.reply + "\r\n"
		if strings.HasPrefix(test.reply, "ERR") {
			reply = fails("%s", test.reply)
		}
		if got := w.do(append([]string{words[0], "k"}, words[1:]...)...); got != reply || w.held("k") != test.after {
			t.Errorf("%s of %s: %q and %q, want %q and %q", test.call, test.before, got, w.held("k"), reply, test.after)
		}
		if n := w.server.Counts.Sum(); n != (decisions.Counts{}) && test.before != "limits" {
			t.Errorf("%s counts as a decision: %v", test.call, n)
		}
	}
}

// INCREX, by the documentation and the tests of Redis 8.8 and of Valkey 9.2, neither of which could be had to compare with. now is 2026.
func TestIncrEx(t *testing.T) {
	const wrong = argument.ErrSyntax
	for _, test := range []struct{ before, options, reply, after string }{
		{"", "", "1 1", "1"},
		{"10", "", "11 1", "11"},
		{"95", "BYINT 0", "95 0", "95"},
		{"105", "byint -10", "95 -10", "95"},
		// bounds
		{"10", "BYINT 5 UBOUND 15", "15 5", "15"},
		{"10", "BYINT 5 UBOUND 12", "10 0", "10"},
		{"10", "BYINT 5 UBOUND 12 SATURATE", "12 2", "12"},
		{"10", "BYINT -5 LBOUND 8", "10 0", "10"},
		{"10", "BYINT -5 LBOUND 8 SATURATE", "8 -2", "8"},
		{"10", "BYINT 5 UBOUND 10 SATURATE", "10 0", "10"},
		{"50", "BYINT 5 UBOUND 30", "50 0", "50"},            // it was beyond the bound before
		{"50", "BYINT 5 UBOUND 30 SATURATE", "30 -20", "30"}, // and comes back to it
		{"50", "BYINT -25 UBOUND 30", "25 -25", "25"},
		{"10", "BYINT -5 LBOUND 20 SATURATE", "20 10", "20"},
		{"10", "BYINT 5 LBOUND 10 UBOUND 10", "10 0", "10"},
		{"5", "LBOUND 0 BYINT 100 UBOUND 10 SATURATE", "10 5", "10"},
		{"", "UBOUND 0", "0 0", ""},
		{"", "UBOUND 0 SATURATE", "0 0", "0"},
		{"", "LBOUND 5", "0 0", ""},
		{"", "LBOUND 5 SATURATE", "5 5", "5"},
		// the ends of 64 bits, and of a count
		{"10", "BYINT " + maxInt + " UBOUND 100", "10 0", "10"},
		{"10", "BYINT " + maxInt + " UBOUND 100 SATURATE", "100 90", "100"},
		{"-10", "BYINT -" + maxInt + " LBOUND -100 SATURATE", "-100 -90", "-100"},
		{maxInt, "", maxInt + " 0", maxInt},
		{"9223372036854775800", "BYINT 10 SATURATE", maxInt + " 7", maxInt},
		{"-9223372036854775801", "BYINT -10 SATURATE", minInt + " -7", minInt},
		{"9223372036854775800", "BYINT 1 SATURATE UBOUND " + minInt, "ERR applied increment would overflow", "9223372036854775800"},
		{largestCount, "", largestCount + " 0", largestCount},
		{largestCount, "BYINT 5 SATURATE UBOUND " + maxInt, largestCount + " 0", largestCount},
		{"0", "LBOUND 1000000000000000 SATURATE", "0 0", "0"},
		{"18446744073709551615", "", argument.ErrNotInteger, "18446744073709551615"},
		{"limits", "", "ERR " + store.ErrWrongType.Error(), "limits"},
		// expiries
		{"", "EX 100", "1 1", "1 for 100000"},
		{"1 for 500000", "", "2 1", "2 for 500000"},
		{"1 for 500000", "PX 1500", "2 1", "2 for 1500"},
		{"1 for 500000", "EX 100 ENX", "2 1", "2 for 500000"},
		{"1", "EX 100 ENX", "2 1", "2 for 100000"},
		{"", "PX 100 ENX", "1 1", "1 for 100"},
		{"1 for 500000", "PERSIST", "2 1", "2"},
		{"", "PERSIST", "1 1", "1"},
		{"1", "EXAT 1767225700", "2 1", "2 for 100000"},
		{"1", "PXAT 1767225600001", "2 1", "2 for 1"},
		{"10", "EXAT 1", "11 1", ""}, // in the past: the key is deleted
		{"", "EXAT 1", "1 1", ""},
		{"10 for 500000", "EXAT 1 ENX", "11 1", "11 for 500000"},
		{"10", "EXAT 1 ENX", "11 1", ""},
		{"10", "BYINT 100 UBOUND 15 EX 100", "10 0", "10"},
		{"10 for 500000", "BYINT 100 UBOUND 15 PERSIST", "10 0", "10 for 500000"},
		{"10", "BYINT 100 UBOUND 15 SATURATE EX 200", "15 5", "15 for 200000"},
		{"", "EX 9000000000000000", "1 1", "1 for 7456146436854"}, // until 2262
		{"", "PXAT " + maxInt, "1 1", "1 for 7456146436854"},
		// conditions
		{"", "NX", "1 1", "1"},
		{"1", "NX", "1 0", "1"},
		{"", "XX EX 100", "0 0", ""},
		{"1", "XX EX 100", "2 1", "2 for 100000"},
		// what is wrong
		{"5", "FOO", wrong, "5"},
		{"5", "BYINT", wrong, "5"},
		{"5", "BYINT 1 FOO", wrong, "5"},
		{"5", "BYINT 1 BYINT 2", wrong, "5"},
		{"5", "BYINT 1 BYFLOAT 1.5", wrong, "5"},
		{"5", "BYFLOAT 1.5 BYINT 1", wrong, "5"},
		{"5", "LBOUND 0 LBOUND 1", wrong, "5"},
		{"5", "SATURATE SATURATE", wrong, "5"},
		{"5", "EX 10 PX 5000", wrong, "5"},
		{"5", "EX 10 EX 10", wrong, "5"},
		{"5", "EX 10 PERSIST", wrong, "5"},
		{"5", "PERSIST EX 10", wrong, "5"},
		{"5", "PERSIST PERSIST", wrong, "5"},
		{"5", "PERSIST ENX", wrong, "5"},
		{"5", "ENX PERSIST", wrong, "5"},
		{"5", "ENX ENX EX 10", wrong, "5"},
		{"5", "NX XX", wrong, "5"},
		{"5", "ENX", errENX, "5"},
		{"5", "BYFLOAT 1.5", errByFloat, "5"},
		{"5", "BYFLOAT x EX 0", errByFloat, "5"},
		{"5", "BYINT 1.5", "ERR Increment is not an integer or out of range", "5"},
		{"5", "LBOUND abc", "ERR LBOUND is not an integer or out of range", "5"},
		{"5", "UBOUND inf", "ERR UBOUND is not an integer or out of range", "5"},
		{"5", "LBOUND 20 UBOUND 0 SATURATE", errBounds, "5"},
		{"5", "EX 0", "ERR invalid expire time in 'increx' command", "5"},
		{"5", "PX -1", "ERR invalid expire time in 'increx' command", "5"},
		{"5", "EX 9223372036854776", "ERR invalid expire time in 'increx' command", "5"},
		{"5", "EXAT 9223372036854776", "ERR invalid expire time in 'increx' command", "5"},
		{"5", "EX 9223372036854775", "ERR invalid expire time in 'increx' command", "5"}, // from now on, it is past the end of int64
		{"5", "PX " + maxInt, "ERR invalid expire time in 'increx' command", "5"},
		{"5", "EX x", argument.ErrNotInteger, "5"},
	} {
		w := newWorld(t)
		w.hold("k", test.before)
		words := append([]string{"INCREX", "k"}, strings.Fields(test.options)...)
		reply := fails("%s", test.reply)
		if value, added, ok := strings.Cut(test.reply, " "); ok && !strings.HasPrefix(test.reply, "ERR") {
			reply = "*2\r\n:" + value + "\r\n:" + added + "\r\n"
		}
		if got := w.do(words...); got != reply || w.held("k") != test.after {
			t.Errorf("%s of %q: %q and %q, want %q and %q", test.options, test.before, got, w.held("k"), reply, test.after)
		}
	}
}

// Calls of one shape are decided together, and a window of them begins anew when its key has expired.
func TestCountsAreGathered(t *testing.T) {
	w := newWorld(t)
	window := frame("INCREX", "k", "UBOUND", "3", "EX", "60", "ENX")
	for range 2 {
		w.asked = nil
		const want = "*2\r\n:1\r\n:1\r\n*2\r\n:2\r\n:1\r\n*2\r\n:3\r\n:1\r\n*2\r\n:3\r\n:0\r\n*2\r\n:3\r\n:0\r\n"
		if got := w.send(strings.Repeat(window, 5)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if len(w.asked) != 1 {
			t.Errorf("batches of %v", w.asked)
		}
		w.sleep(60 * time.Second)
	}
	w.asked = nil
	pipeline := frame("INCR", "n") + frame("INCR", "n") + frame("DECRBY", "n", "5") + frame("INCRBY", "n", "x") + frame("incr", "n")
	want := ":1\r\n:2\r\n:-3\r\n" + fails(argument.ErrNotInteger) + ":-2\r\n"
	if got := w.send(pipeline); got != want || fmt.Sprint(w.asked) != "[2 1 1]" {
		t.Errorf("%q, want %q; batches of %v", got, want, w.asked)
	}
	if got := w.send(frame("INCR", "n", "n") + frame("DECRBY", "n")); strings.Count(got, "-") != 2 {
		t.Errorf("%q, want two errors", got)
	}
}

// An INCREX with a bound is a decision, and the keys of those that added nothing are among those limited most.
func TestBoundedCountsAreDecisions(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{
		"INCREX k UBOUND 2", "INCREX k UBOUND 2", "INCREX k UBOUND 2", "INCREX k UBOUND 2", // two pass
		"INCREX k BYINT 5 UBOUND 4 SATURATE", "INCREX k BYINT 5 UBOUND 4 SATURATE", // one does, in part
		"INCREX k", "INCREX k BYINT 0 UBOUND 9", "INCREX k UBOUND 9 NX", "INCREX k UBOUND x", "INCREX k BYINT " + maxInt, // none of these
	} {
		w.do(strings.Fields(line)...)
	}
	w.d.Decided.Settle(0, nil)
	if n := w.server.Counts.LiteralsSinceReset(); n != (decisions.Counts{decisions.CountAllowed: 3, decisions.CountLimited: 3}) {
		t.Errorf("%v", n)
	}
	top := w.server.Top.Most(decisions.ByDenied, decisions.Start, 9, decisions.Any)
	if len(top) != 1 || top[0] != (decisions.Key{Key: "k", Count: 3}) {
		t.Errorf("limited most: %v", top)
	}
}
