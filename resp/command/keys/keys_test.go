package keys

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/store/memory"
)

func host(o memory.Options) *calltest.Host {
	return calltest.New(o, append(Rows(Options{}), AllRows(Options{})...)...)
}

// wants runs commands, each a line, and compares their replies.
func wants(t *testing.T, h *calltest.Host, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := h.Do(strings.Fields(pairs[i])...); got != pairs[i+1] {
			t.Errorf("%s: %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

func fails(text string, args ...any) string { return "-" + fmt.Sprintf(text, args...) + "\r\n" }

const tat = "9000000000000000000"

// A text that is no integer is refused, as SET refuses it, and nothing changes.
func TestOnlyIntegersAreStored(t *testing.T) {
	h := host(memory.Options{})
	wants(t, h, "SET k "+tat+" EX 100", "+OK\r\n")
	for _, value := range []string{"", "x", "-0", "007", "5.5", "18446744073709551616", " 5"} {
		for _, words := range [][]string{
			{"SETNX", "new", value}, {"SETNX", "k", value}, {"GETSET", "k", value}, {"GETSET", "new", value}, {"SETEX", "k", "5", value},
			{"SET", "k", value, "NX"}, {"SET", "k", value, "PX", "5", "NX"},
		} {
			want := fails(argument.ErrNotInteger)
			if strings.Contains(strings.Join(words, " "), "NX") { // what people send for a lock
				want = fails(errNoLock)
			}
			if got := h.Do(words...); got != want {
				t.Errorf("%q: %q", words, got)
			}
		}
	}
	wants(t, h, "GET k", "$19\r\n"+tat+"\r\n", "TTL k", ":100\r\n", "DBSIZE", ":1\r\n")
}

// At noeviction nothing is made where there is no room, and what is there may be changed.
func TestGetSetAndCopyWhenFull(t *testing.T) {
	h := host(memory.Options{MaxKeys: 1, NoEviction: true})
	wants(t, h, "SETNX k "+tat, ":1\r\n")
	for _, line := range []string{"SETNX new " + tat, "GETSET new " + tat, "COPY k new", "COPY k new REPLACE"} {
		wants(t, h, line, fails(command.ErrOOM))
	}
	wants(t, h, "GETSET k 9000000000000000001", "$19\r\n"+tat+"\r\n", "RENAMENX k new", ":1\r\n",
		"GETDEL new", "$19\r\n9000000000000000001\r\n", "SETNX k "+tat, ":1\r\n")
}

// Options go together as in Redis, which lets some be given twice.
func TestOptions(t *testing.T) {
	h := host(memory.Options{})
	wants(t, h, "SET k 5 EX 5 EX 6", "+OK\r\n", "SET k "+tat+" px 100000 XX xx", "+OK\r\n", "PTTL k", ":100000\r\n",
		"SET k 6 KEEPTTL GET", "$19\r\n"+tat+"\r\n")
	for _, line := range []string{
		"SET k 6 NX XX", "SET k 6 EX 5 PX 5", "SET k 6 EX 5 KEEPTTL", "SET k 6 KEEPTTL EX 5", "SET k 6 PXAT", "SET k 6 PERSIST",
		"GETEX k EX 5 PERSIST", "GETEX k NX", "COPY k to NEW", "COPY k to DB", "SCAN 0 COUNT", "SCAN 0 COUNT 0", "SCAN 0 NX 1",
		"FLUSHALL NOW", "FLUSHALL SYNC ASYNC", "FLUSHALL SYNC SYNC",
	} {
		wants(t, h, line, fails(argument.ErrSyntax))
	}
	wants(t, h, "SET k 6 EX 0", fails(argument.ErrInvalidExpire, "set"), "PSETEX k 0 6", fails(argument.ErrInvalidExpire, "psetex"),
		"COPY k to DB 1", fails(argument.ErrDBIndex), "COPY k k", fails(errSameKey), "EXPIRE k 1 NX GT", fails(errExpireNX),
		"EXPIRE k 1 GT LT", fails(errExpireGTLT), "EXPIRE k 1 x", fails(errExpireOption, "x"))
}

// EXPIRE's conditions compare with what the key has; no expiry is later than any.
func TestExpireConditions(t *testing.T) {
	h := host(memory.Options{})
	wants(t, h, "SET k "+tat, "+OK\r\n", "EXPIRE k 10 XX", ":0\r\n", "EXPIRE k 10 GT", ":0\r\n", "EXPIRE k 10 LT", ":1\r\n",
		"EXPIRE k 20 NX", ":0\r\n", "EXPIRE k 5 GT", ":0\r\n", "EXPIRE k 20 GT", ":1\r\n", "EXPIRE k 20 LT", ":0\r\n", "TTL k", ":20\r\n",
		"EXPIREAT k 1767225630 XX", ":1\r\n", "TTL k", ":30\r\n", "PEXPIRETIME k", ":1767225630000\r\n",
		"PERSIST k", ":1\r\n", "PERSIST k", ":0\r\n", "TTL k", ":-1\r\n", "EXPIRE k -1", ":1\r\n", "TTL k", ":-2\r\n",
		"EXPIRE k 10", ":0\r\n")
}

// SCAN and KEYS find the keys that match, of the type that is asked for.
func TestScan(t *testing.T) {
	h := host(memory.Options{})
	wants(t, h, "SET a1 "+tat, "+OK\r\n", "SET b1 "+tat, "+OK\r\n", "KEYS a*", "*1\r\n$2\r\na1\r\n",
		"SCAN 0 MATCH b? COUNT 100 TYPE STRING", "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nb1\r\n",
		"SCAN 0 TYPE hash COUNT 100", "*2\r\n$1\r\n0\r\n*0\r\n", "SCAN x", fails(errInvalidCursor), "TYPE a1", "+string\r\n",
		"DEL a1 b1 c1", ":2\r\n", "RANDOMKEY", "$-1\r\n")
}
