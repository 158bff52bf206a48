package take

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"

// TestLimitsAreHashes uses keys with limits as any key of Redis.
func TestLimitsAreHashes(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Do("CL.POLICY", "SET", "api", "9/1h")
	for _, limit := range []string{
		"5/1h", "5/1h,algo=log", "7/2h,algo=window", "5/1h,algo=slide", "5/1h,algo=slide,buckets=3", "3/1d,burst=9,block=1h",
		"4/month,tz=-03:30", "@api",
	} {
		if got := c.Take("k", limit, "COST", "2"); got.Limited != 0 {
			t.Errorf("%s: %+v", limit, got)
		}
	}
	c.Throttle("t", "5", "1", "3600")
	c.Play(
		step{"TYPE k", "+hash"}, step{"TYPE t", "+string"}, step{"HLEN k", ":8"}, step{"HLEN t", wrongType}, step{"HGETALL t", wrongType},
		step{"HSET t gcra/1h x", "-ERR 'gcra/1h' is not a limit and its state"},
		step{"HLEN nosuch", ":0"}, step{"HGETALL nosuch", "*0"},
		step{"OBJECT ENCODING k", "$8\r\nlistpack"}, step{"OBJECT REFCOUNT k", ":1"}, step{"OBJECT IDLETIME k", ":…"},
		step{"OBJECT FREQ k", "-ERR An LFU …"}, step{"GET k", wrongType}, step{"STRLEN k", wrongType}, step{"SET k 5 GET", wrongType},
		step{"CL.THROTTLE k 15 30 60", wrongType}, step{"CL.TAKE t 5/1h", wrongType}, step{"CL.TAKE t 5/1h PEEK", wrongType},
		step{"CL.GIVE t 5/1h 1", wrongType}, step{"CL.MTAKE 2 k 9/9h t 5/1h", wrongType}, step{"CL.THROTTLE t @api", wrongType},
		step{"CL.MTAKE 2 t 9/9h k 5/1h", wrongType}, step{"HLEN k", ":8"},
		step{"EXISTS k t k", ":3"}, step{"TOUCH k t", ":2"}, step{"DBSIZE", ":2"},
	)
	fields := harness.Pairs(t, c.Do("HGETALL", "k"))
	for name, start := range map[string]string{
		"gcra/1h":                "limit=5/1h tat=",
		"log/1h":                 "limit=5/1h,algo=log calls=",
		"window/2h":              "limit=7/2h,algo=window until=",
		"slide/1h":               "limit=5/1h,algo=slide start=",
		"slide/1h,buckets=3":     "limit=5/1h,algo=slide,buckets=3 newest=",
		"gcra/1d":                "limit=3/1d,burst=9 tat=",
		"window/month,tz=-03:30": "limit=4/month,tz=-03:30 until=",
		"@api/gcra/1h":           "limit=9/1h tat=",
	} {
		if !strings.HasPrefix(fields[name], start) {
			t.Errorf("HGETALL: %s is %q, want it to start with %q", name, fields[name], start)
		}
	}
	// HSET takes what HGETALL shows.
	command := []string{"HSET", "copy"}
	for name, value := range fields {
		command = append(command, name, value)
	}
	if got := c.Do(command...); got != ":8\r\n" {
		t.Errorf("HSET: %q", got)
	}
	if got := harness.Pairs(t, c.Do("HGETALL", "copy")); fmt.Sprint(got) != fmt.Sprint(fields) {
		t.Errorf("HGETALL of the copy: %v, want %v", got, fields)
	}
	c.Play(
		step{"HSET copy gcra/1h '" + fields["gcra/1h"] + "'", ":0"},
		step{"CL.TAKE copy 5/1h COST 0", "0 5 3 …"}, step{"CL.TAKE copy @api COST 0", "0 9 7 …"},
		step{"CL.TAKE copy 5/1h,algo=slide,buckets=3 COST 4", "1 5 3 …"},
		step{"HSET copy gcra/1h", "-ERR wrong number of arguments for 'hset' command"},
		step{"HSET copy gcra/2h '" + fields["gcra/1h"] + "'", "-ERR 'gcra/2h' is not a limit and its state"},
		step{"HSET copy gcra/1h 'limit=5/1h tat=1' gcra/1h 5", "-ERR 'gcra/1h' is not a limit and its state"},
		step{"HSET copy gcra/1h 'limit=5/1h tat=18446744073709551616'", "-ERR 'gcra/1h' is not a limit and its state"},
		step{"HSET past gcra/1h 'limit=5/1h tat=1'", ":0"}, step{"EXISTS past", ":0"},
		step{"HLEN copy", ":8"}, step{"DEL copy", ":1"},

		step{"COPY k k2", ":1"}, step{"TYPE k2", "+hash"}, step{"CL.TAKE k2 5/1h COST 1", "0 5 2 …"},
		step{"CL.TAKE k 5/1h COST 0", "0 5 3 …"}, step{"CL.TAKE k2 @api COST 0", "0 9 7 …"}, step{"COPY k k2", ":0"},
		step{"COPY k k2 REPLACE", ":1"}, step{"CL.TAKE k2 5/1h COST 0", "0 5 3 …"}, step{"RENAMENX k k2", ":0"}, step{"DEL k2", ":1"},
		step{"RENAMENX k k3", ":1"}, step{"RENAMENX k3 k", ":1"}, step{"HLEN k", ":8"}, step{"MEMORY USAGE k", ":…"},
		step{"GETDEL k", wrongType}, step{"GETEX k", wrongType}, step{"GETEX k EX 0", wrongType},
		step{"GETSET k 9000000000000000000", wrongType}, step{"SETNX k 9000000000000000000", ":0"},
		step{"HLEN k", ":8"},
		step{"RENAME k k2", "+OK"}, step{"TYPE k2", "+hash"}, step{"EXISTS k", ":0"}, step{"CL.TAKE k2 5/1h COST 4", "1 5 3 …"},
		step{"RENAME k2 t", "+OK"}, step{"TYPE t", "+hash"}, step{"HLEN t", ":8"},
		step{"SET t 9000000000000000000", "+OK"}, step{"TYPE t", "+string"}, step{"CL.TAKE t 5/1h", wrongType},
		step{"UNLINK t", ":1"}, step{"CL.TAKE t 5/1h COST 5", "0 5 0 -1 3600000 5 0"}, step{"DBSIZE", ":1"},
		step{"FLUSHDB", "+OK"}, step{"CL.TAKE t 5/1h COST 5", "0 5 0 -1 3600000 5 0"},
	)
}

// TestScanLimits sees keys live as long as their limits have something to remember.
func TestScanLimits(t *testing.T) {
	t.Parallel()
	harness.Dial(t, harness.Start(t).Addr).Play(
		step{"CL.THROTTLE t 15 30 6000", "0 16 15 -1 200"}, step{"CL.TAKE k 5/1h", "0 5 4 -1 720000 1 0"},
		step{"SCAN 0 TYPE hash", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk"}, step{"SCAN 0 TYPE string", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nt"},
		step{"SCAN 0 TYPE list", "*2\r\n$1\r\n0\r\n*0"},
	)
}

func TestLimitsExpire(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Play(
		step{"CL.TAKE k 10/10h", "0 10 9 …"}, step{"TTL k", ":3600"},
		step{"CL.TAKE k 5/5h,algo=window", "0 5 4 …"}, step{"TTL k", ":18000"},
		step{"CL.TAKE k 5/1h,algo=log", "0 5 4 …"}, step{"TTL k", ":18000"},
		step{"EXPIRE k 100", ":1"}, step{"TTL k", ":100"}, step{"CL.TAKE k 5/5h,algo=window", "0 5 3 …"}, step{"EXPIRE k 100000 GT", ":1"},
		step{"TTL k", ":100000"}, step{"PERSIST k", ":1"},
		step{"CL.GIVE k 5/5h,algo=window 5", ":2"},
		step{"EXPIRE k 0", ":1"}, step{"EXISTS k", ":0"},
		step{"CL.TAKE k 5/1h,algo=log,block=3h COST 5", "0 5 0 …"}, step{"CL.TAKE k 5/1h,algo=log,block=3h", "1 5 0 10800000 …"},
	)
	if ms := celldtest.IntReply(c.Do("PTTL", "k")); ms < 10_700_000 || ms > 10_800_000 {
		t.Errorf("PTTL of a blocked key: %d", ms)
	}
	for _, limit := range []string{
		"5/100ms", "5/100ms,algo=window", "5/100ms,algo=log", "5/50ms,algo=slide", "5/100ms,algo=slide,buckets=2", "1/1ms,block=100ms",
	} {
		c.Do("CL.TAKE", limit, limit)
		c.Do("CL.TAKE", limit, limit)
	}
	c.Do("DEL", "k")
	celldtest.Eventually(t, "all keys have expired", func() bool { return c.Do("DBSIZE") == ":0\r\n" })
	if got := harness.KeyList(c.Do("KEYS", "*")); len(got) != 0 {
		t.Errorf("KEYS: %q", got)
	}
}

// TestTakeInTransactions queues and watches.
func TestTakeInTransactions(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c, other := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	c.Play(
		step{"MULTI", "+OK"},
		step{"CL.TAKE k 5/1h COST 3", "+QUEUED"}, step{"CL.TAKE k 5/1h COST 3", "+QUEUED"}, step{"CL.TAKE k nonsense", "+QUEUED"},
		step{"CL.MTAKE 1 k 5/1h", "+QUEUED"},
		step{"CL.POLICY SET p 3/1h", "+QUEUED"}, step{"CL.TAKE l @p", "+QUEUED"}, step{"CL.GIVE k 5/1h 1", "+QUEUED"},
		step{"CL.RULE ADD DENY x", "+QUEUED"}, step{"CL.TAKE x 5/1h", "+QUEUED"}, step{"HLEN k", "+QUEUED"},
	)
	got := c.Do("EXEC")
	for _, want := range []string{
		"*10\r\n*7\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:2160000\r\n:3\r\n:0\r\n*7\r\n:1\r\n:5\r\n:2\r\n:720000\r\n:2160000\r\n:0\r\n:0\r\n",
		"-ERR invalid limit: limit 'nonsense': ", "*2\r\n*5\r\n:0\r\n:0\r\n:1\r\n:-1\r\n:0\r\n*5\r\n:0\r\n:5\r\n:1\r\n:-1\r\n:2880000\r\n",
		":1\r\n*7\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:1200000\r\n:1\r\n:0\r\n:1\r\n:1\r\n*7\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n:0\r\n:0\r\n:1\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("EXEC: %q\nlacks %q", got, want)
		}
	}
	c.Play(step{"MULTI", "+OK"}, step{"CL.TAKE k", "-ERR wrong number of arguments for 'cl.take' command"},
		step{"EXEC", "-EXECABORT Transaction discarded because of previous errors."})
	for _, change := range []struct {
		command string
		aborts  bool
	}{
		{"CL.TAKE w 5/1h", true}, {"CL.TAKE w 5/1h COST 0", false}, {"CL.TAKE w 5/1h PEEK", false}, {"CL.TAKE w 5/1h COST 5", false},
		{"CL.TAKE w 5/1h,burst=1 PEEK", false}, {"CL.TAKE w 5/1h,burst=1 COST 2", true}, {"CL.TAKE w 5/1h,burst=1 COST 2", false},
		{"CL.GIVE w 5/1h 1", true}, {"CL.GIVE w 5/1h 1", false}, {"CL.TAKE w 5/1h FORCE COST 9", true}, {"CL.MTAKE 2 v 5/1h w 9/2h", true},
		{"CL.MTAKE 2 v 5/1h w 9/2h COST 9", false}, {"CL.THROTTLE w @p", true}, {"CL.RESET w", true}, {"CL.RESET w", false},
	} {
		if change.command == "CL.GIVE w 5/1h 1" && !change.aborts {
			other.Do("CL.RESET", "w")
		}
		c.Do("WATCH", "w")
		other.Do(strings.Fields(change.command)...)
		c.Do("MULTI")
		c.Do("PING")
		if got := c.Do("EXEC"); strings.HasPrefix(got, "*-1") != change.aborts {
			t.Errorf("WATCH, and another's %s: EXEC is %q", change.command, got)
		}
		if change.command == "CL.TAKE w 5/1h" {
			c.Do("CL.TAKE", "w", "5/1h") // so that 4 more do not pass
		}
	}
}

func TestTakeInMonitor(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	monitor, c := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	monitor.Do("MONITOR")
	calls := [][]string{{"CL.TAKE", "k", "5/1h", "COST", "2"}, {"cl.take", "k", "5/1h"}, {"CL.MTAKE", "1", "k", "5/1h"},
		{"CL.GIVE", "k", "5/1h", "1"}, {"CL.POLICY", "SET", "a", "5/1h"}, {"CL.RULE", "LIST"}, {"HGETALL", "k"}}
	for range 3 {
		c.Send(slices.Concat(harness.Frame(calls[0]...), harness.Frame(calls[0]...)))
		c.Reply()
		c.Reply()
		for range 2 {
			if got := monitor.Reply(); !strings.HasSuffix(got, `"CL.TAKE" "k" "5/1h" "COST" "2"`+"\r\n") {
				t.Errorf("MONITOR: %q", got)
			}
		}
	}
	for _, call := range calls {
		c.Do(call...)
		if got, want := monitor.Reply(), `"`+strings.Join(call, `" "`)+"\"\r\n"; !strings.HasSuffix(got, want) {
			t.Errorf("MONITOR: %q, want %q", got, want)
		}
	}
}

// TestTakeInCommand asks what the server says of each command, and SLOWLOG, INFO and CLIENT LIST.
func TestTakeInCommand(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t, "--slowlog-log-slower-than", "0").Addr)
	for name, want := range map[string]string{
		"cl.take":        "cl.take -3 [denyoom write] 1 1 1",
		"cl.give":        "cl.give -4 [write] 1 1 1",
		"cl.reset":       "cl.reset -2 [write] 1 -1 1",
		"hgetall":        "hgetall 2 [readonly] 1 1 1",
		"hset":           "hset -4 [denyoom write] 1 1 1",
		"hlen":           "hlen 2 [readonly] 1 1 1",
		"cl.policy":      "cl.policy -2 [] 0 0 0",
		"cl.rule":        "cl.rule -2 [] 0 0 0",
		"cl.policy|set":  "cl.policy|set -4 [denyoom write] 0 0 0",
		"cl.policy|list": "cl.policy|list -2 [readonly] 0 0 0",
		"cl.rule|add":    "cl.rule|add -4 [denyoom write] 0 0 0",
		"cl.rule|del":    "cl.rule|del -4 [write] 0 0 0",
	} {
		if got := harness.CommandRow(t, c.Do("COMMAND", "INFO", name)); got != want {
			t.Errorf("COMMAND INFO %s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"cl.take", "cl.mtake", "cl.give", "cl.reset", "cl.policy", "cl.rule", "hgetall", "hset", "hlen"} {
		docs := c.Do("COMMAND", "DOCS", name)
		for _, want := range []string{"$7\r\nsummary\r\n", "$5\r\ngroup\r\n", "$10\r\ncomplexity\r\n"} {
			if !strings.Contains(docs, want) {
				t.Errorf("COMMAND DOCS %s: %q", name, docs)
			}
		}
		if row := c.Do("COMMAND", "INFO", name); !strings.Contains(row, name) {
			t.Errorf("COMMAND INFO %s: %q", name, row)
		}
		if !slices.Contains(harness.KeyList(c.Do("COMMAND", "LIST")), name) {
			t.Errorf("COMMAND LIST lacks %s", name)
		}
	}
	for call, want := range map[string]string{
		"CL.TAKE k 5/1h 6/2h COST 3": "k", "CL.MTAKE 2 a 5/1h b 6/2h COST 2": "a b", "CL.MTAKE 1 a 5/1h US": "a", "CL.GIVE k 5/1h 1": "k",
		"CL.RESET a b c": "a b c", "CL.THROTTLE k @p": "k", "HSET k f v": "k", "HGETALL k": "k",
	} {
		got := harness.KeyList(c.Do(append([]string{"COMMAND", "GETKEYS"}, strings.Fields(call)...)...))
		if strings.Join(got, " ") != want {
			t.Errorf("COMMAND GETKEYS %s: %q, want %s", call, got, want)
		}
	}
	c.Play(
		step{"COMMAND GETKEYS CL.POLICY SET a 5/1h", "-ERR The command has no key arguments"},
		step{"COMMAND GETKEYS CL.TAKE k", "-ERR Invalid number of arguments specified for command"},
		step{"COMMAND GETKEYS CL.MTAKE 5 a 5/1h b 6/2h COST 2", "-ERR Invalid arguments specified for command"},
		step{"COMMAND GETKEYS CL.MTAKE 2 a 5/1h b", "-ERR Invalid arguments specified for command"},
		step{"COMMAND GETKEYS CL.MTAKE 0 a 5/1h", "-ERR Invalid arguments specified for command"},
		step{"COMMAND GETKEYS CL.MTAKE x a 5/1h", "-ERR Invalid arguments specified for command"},
		step{"CL.POLICY HELP",
			"*15\r\n+CL.POLICY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n+SET name limit [limit] ... [NX|XX] [RESET] [EX seconds]\r\n…"},
		step{"CL.RULE HELP", "*9\r\n…"}, step{"CL.TAKE k 5/1h,shadow COST 6", "0 5 5 -1 0 6 0"}, step{"CL.TAKE k 5/1h,shadow", "0 5 4 …"},
	)
	stats := harness.InfoSections(c.Do("INFO", "all"))
	if got := stats["Stats"]["shadow_limited"] + " " + stats["Stats"]["shadow_allowed"]; got != "1 1" {
		t.Errorf("INFO: shadow_limited, shadow_allowed: %s", got)
	}
	if got := stats["Commandstats"]["cmdstat_cl.take"]; !strings.HasPrefix(got, "calls=2,") {
		t.Errorf("INFO commandstats: cl.take %s", got)
	}
	if got := c.Do("SLOWLOG", "GET", "100"); !strings.Contains(got, "5/1h,shadow") {
		t.Errorf("SLOWLOG GET: %q", got)
	}
	if got := c.Do("CLIENT", "LIST"); !strings.Contains(got, "cmd=client|list") {
		t.Errorf("CLIENT LIST: %q", got)
	}
}

// TestTakeHostile sends what is wrong, large, or both: each gets one line, and nothing is stored.
func TestTakeHostile(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--proto-max-bulk-len", "4mb", "--client-query-buffer-limit", "16mb")
	c := harness.Dial(t, srv.Addr)
	long, many := strings.Repeat("9", 1_000_000), make([]string, 1000)
	for i := range many {
		many[i] = strconv.Itoa(i+1) + "/" + strconv.Itoa(i+1) + "h"
	}
	manyMillis := make([]string, 1000)
	for i := range many {
		manyMillis[i] = "5/" + strconv.Itoa(i+1) + "s"
	}
	began := cpuTime(t, srv.Cmd.Process.Pid)
	for _, args := range [][]string{
		{"k", long}, {"k", long + "/1s"}, {"k", "5/" + long + "s"}, {"k", "5/1s," + long}, {"k", "5/1s,burst=" + long},
		{"k", "5/1s,tz=" + long}, {"k", "5/1s" + strings.Repeat(",shadow", 100_000)}, {"k", "@" + long}, {"k", "5/1s,algo=\x00\r\n+OK\r\n"},
		{"k", "@\r\n:1\r\n"}, {"k", strings.Repeat(",", 1_000_000)}, {"k", "@" + strings.Repeat(":", 100_000)}, {"k", "5/1s", "COST", long},
		{"k", "5/1s", long}, append([]string{"k"}, many...), append([]string{"k"}, manyMillis...),
		{"k", "5/1s", "COST", "-1"}, {"k", "5/1s", "COST", "9007199254740992"}, {"k", "5/1s", "COST", "1.5"}, {"k", "5/1s", "COST", ""},
		{"k", "5/1s", "COST"}, {"k", "5/1s", "COST", "1", "COST", "1"}, {"k", "5/1s", "NOSUCH"}, {"k", "5/1s", ""},
		{"k", "5/1s", "PEEK", "UPTO"}, {"k", "5/1s", "FORCE", "PEEK"}, {"k", "5/1s", "COST", "1", "6/1m"}, {"k", "5/1s", "6/1s"},
		{"k", "COST", "5"}, {"k", ""}, {"k", "/"}, {"k", "5/"}, {"k", "/1s"}, {"k", "0/1s"}, {"k", "-5/1s"}, {"k", "+5/1s"}, {"k", "5/0s"},
		{"k", "5/-1s"}, {"k", "5/1.5s"}, {"k", "5/1S"}, {"k", "5/367d"}, {"k", "5/1y"}, {"k", "5/999999999999999999d"},
		{"k", "2147483648/1s"}, {"k", "10000001/1s"}, {"k", "11/1us"}, {"k", "5/1s,"}, {"k", "5/1s,,"}, {"k", "5/1s,burst=0"},
		{"k", "5/1s,burst=-1"}, {"k", "1/366d,burst=2147483647"}, {"k", "5/1s,algo="}, {"k", "5/1s,algo=GCRA"}, {"k", "5/1s,algo=conc,"},
		{"k", "5/1s,algo=slide,burst=3"}, {"k", "5/1s,buckets=3"}, {"k", "5/1s,algo=slide,buckets=1"}, {"k", "5/1s,algo=slide,buckets=129"},
		{"k", "5/1s,algo=log,algo=log"}, {"k", "5/1s,align=clock"}, {"k", "5/1s,algo=window,align=wall"},
		{"k", "5/1s,algo=window,tz=+08:00"}, {"k", "5/day,tz=+25:00"}, {"k", "5/day,tz=08:00"}, {"k", "5/day,algo=log"},
		{"k", "5/day,align=clock"}, {"k", "5/1s,block=0s"}, {"k", "5/1s,shadow=1"}, {"k", "10001/1h,algo=log"},
		{"", "5/1s,x"}, {"k"}, {},
	} {
		got := c.Do(append([]string{"CL.TAKE"}, args...)...)
		if !strings.HasPrefix(got, "-") || strings.Count(got, "\n") != 1 || len(got) > 400 {
			t.Errorf("CL.TAKE %.80q: %.400q", args, got)
		}
	}
	for _, line := range []string{
		"CL.MTAKE 0 k 5/1s", "CL.MTAKE -1 k 5/1s", "CL.MTAKE 129 k 5/1s", "CL.MTAKE 9223372036854775807 k 5/1s", "CL.MTAKE x k 5/1s",
		"CL.MTAKE 2 k 5/1s", "CL.MTAKE 2 k 5/1s l", "CL.MTAKE 1 k 5/1s l 5/1s", "CL.MTAKE 1 k nonsense", "CL.MTAKE 1 k 5/1s COST -1",
		"CL.MTAKE 2 k 5/1s k 6/1s", "CL.GIVE k 5/1s -1", "CL.GIVE k 5/1s 9223372036854775808", "CL.GIVE k 5 1", "CL.GIVE k 5/1s",
		"CL.RESET", "CL.THROTTLE k @", "CL.THROTTLE k @p 5 5", "HSET k gcra/1s " + long[:65_000], "HSET k " + long[:65_000] + " x",
	} {
		if got := c.Do(strings.Fields(line)...); !strings.HasPrefix(got, "-") || strings.Count(got, "\n") != 1 || len(got) > 400 {
			t.Errorf("%.80s: %.400q", line, got)
		}
	}
	if took := cpuTime(t, srv.Cmd.Process.Pid) - began; took > 5*time.Second {
		t.Errorf("that took %v of its CPU time", took)
	}
	c.Play(step{"DBSIZE", ":0"}, step{"CL.POLICY LIST", "*0"})
	c.Play(step{"CL.MTAKE 1 k 5/1s FULL", "-ERR FULL is not an option of CL.MTAKE: its reply always has an array for each pair"},
		step{"CL.MTAKE 1 k 5/1s COST 2 full US", "-ERR FULL is not an option of CL.MTAKE: its reply always has an array for each pair"},
		step{"CL.MTAKE 1 k 5/1s FULL NOSUCH",
			"-ERR unknown option 'NOSUCH': expected COST, OF, WAIT, RESERVE, …"}, step{"DBSIZE", ":0"})
	// An empty key is one like any other, and 128 limits are not too many.
	c.Play(step{"CL.TAKE '' 5/1h", "0 5 4 -1 720000 1 0"}, step{"EXISTS ''", ":1"})
	if got := c.Take(append([]string{"k"}, many[:128]...)...); got.Limited != 0 {
		t.Errorf("128 limits: %+v", got)
	}
	c.Play(step{"CL.TAKE k 5/200h", "-ERR a key has at most 128 limits at once"}, step{"HLEN k", ":128"})
	if got := c.Do("INFO", "everything"); !harness.ContainsLine(got, "handler_panics:0") {
		t.Error("a handler has panicked")
	}
	srv.Alive()
}

// cpuTime is the CPU time of a process so far. Unlike wall time, it is the same on a loaded machine.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	var user, system int64 // in ticks of 10 ms, see proc(5)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
