package take

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// told is a row of a page, by its first cell, and what shows that its commands do that: lines of [times] command => a pattern of each
// reply, whose lines stand between blanks. $1 is the row's first command.
type told struct{ row, shows string }

// TestIncidentsPage does what docs/how-to/incidents.md says, in its order.
func TestIncidentsPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policies")
	celldtest.WriteFile(t, "api 100/1h\n", file)
	srv := harness.Start(t, "--policies", file)
	other := harness.Dial(t, srv.Addr)
	if got := other.Do("PING"); got != "+PONG\r\n" {
		t.Fatal(got)
	}
	do(t, harness.Dial(t, srv.Addr), "incidents", []told{
		{"who hits us?", `
			CL.TAKE user:7 @api COST 90 => \*7 :0 :100
			2 CL.TAKE user:7 @api COST 50 => \*7 :1
			$1 => \*1 \*2 \$6 user:7 :3
			$2 => \*1 \*2 \$6 user:7 :2`},
		{"who is nearly limited?", `$1 => \*1 \*2 \$6 user:7 :1`},
		{"which policy denies?", `$1 => \$3 api .* \$7 limited :2`},
		{"why is this call denied?", `
			10 CL.TAKE user:7 @api => \*7 :0
			$1 => would be denied`},
		{"what has a key used?", `$1 => \$3 api .* \$4 used :100 \$9 remaining :0`},
		{"block a key, or all that begin so", `
			$1 => :1
			CL.TAKE user:9 1/1h => \*7 :1 :0 :0 :-1
			$2 => :1
			CL.TAKE bot:x 1/1h => \*7 :1 :0 :0 :-1`},
		{"block a net for an hour", `
			$1 => :1
			CL.TAKE ip:203.0.113.9 1/1h => \*7 :1 :0 :0 :3[56]\d{5} `},
		{"exempt a key", `
			$1 => :1
			3 CL.TAKE user:8 1/1h => \*7 :0`},
		{"undo a rule", `
			$1 => DENY \$6 user:9
			$2 => :1
			CL.TAKE user:9 1/1h => \*7 :0`},
		{"unblock a key: its limits are full again", `
			$1 => :1
			CL.TAKE user:7 @api COST 100 => \*7 :0`},
		{"give back a quota", `
			$1 => :20
			CL.TAKE user:7 @api COST 20 => \*7 :0`},
		{"raise a plan for an hour", `
			$1 => :1
			CL.TAKE user:7 @api COST 900 => \*7 :0 :1000
			CL.POLICY TTL api => :3(600|5\d\d) `},
		{"pause an upstream for 30 seconds", `
			$1 => :1
			CL.TAKE upstream:search 1/1h => \*7 :1 :0 :0 :\d{4,5} `},
		{"keep changes without persistence", `$1 => \+OK`},
		{"make room in a full table", `
			$1 => \+OK
			CONFIG GET max-keys => 2000000
			$2 => \+OK
			CONFIG GET maxmemory => 1073741824`},
		{"close all connections", `$1 => :1`},
	})
	other.Closed()
	if got := celldtest.ReadFile(t, file); !strings.Contains(got, "\nrule deny bot:*\n") || !strings.HasPrefix(got, "api 100/1h\n") {
		t.Errorf("saved: %s", got)
	}
}

// TestWishesPage does what docs/how-to/wishes.md wishes, each on a celld without keys.
func TestWishesPage(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	do(t, c, "wishes", []told{
		{"allow 100 calls a minute, and 1000 an hour", `$1 => \*7 :0 :100 :99`},
		{"allow 5 in any 15 minutes, exactly", `
			5 $1 => \*7 :0 :5
			$1 => \*7 :1 :5 :0`},
		{"space calls evenly, and wait for my turn", `3 $1 => \*7 :0`},
		{"learn when my turn is", `$1 => \*7 :0`},
		{"begin a quota at midnight in Berlin", `$1 => \*7 :0 :10000 :9999`},
		{"limit a user and all users together", `$1 => \*3 \*5 :0`},
		{"let a write cost 5, and limit writes, too", `
			$1 => \*7 :0 :10 :9
			CL.SHOW user:42 => \$4 used :5 .* \$4 used :1 `},
		{"send what fits of a batch of 50", `
			$1 => \*7 :0 :30 :0 :-1 :\d+ :30
			$1 => \*7 :1`},
		{"ban for an hour after five failures", `
			5 $1 => \*7 :0
			$1 => \*7 :1 :5 :0 :3[56]\d{5} `},
		{"ban longer each time", `
			5 $1 => \*7 :0
			$1 => \*7 :1 :5 :0 :60000
			CL.TAKE ip:192.0.2.1 20/1h,block=1h COST 15 => \*7 :0 :20
			$1 => \*7 :1 :20 :0 :3600000 `},
		{"lift a ban", `
			2 CL.TAKE login:ann 1/1h,block=1h => \*7
			$1 => :1
			CL.TAKE login:ann 1/1h,block=1h => \*7 :0`},
		{"count failures only", `
			$1 => \*7 :0
			5 $2 => \*7 :0
			$1 => \*7 :1`},
		{"give back what a call took for nothing", `
			CL.TAKE user:42 100/1m COST 100 => \*7 :0
			$1 => :1`},
		{"learn the cost afterwards", `
			$1 => \*8 :0 :100000 :98500
			$2 => :1
			CL.TAKE llm:7 100000/1m COST 99000 => \*7 :0`},
		{"repeat a call, and pay once", `2 $1 => \*8 :0 :100 :99`},
		{"run 20 at once for each tenant", `
			20 $1 => \*8 :0
			CL.TAKE tenant:7 20/30s,algo=conc PEEK => \*8 :1
			$2 => :1
			$1 => \*8 :0`},
		{"… and 200 in all", `$1 => \*3 \*6 :0`},
		{"hold a lock", `
			$1 => \*8 :0
			CL.TAKE lock:report 1/5s,algo=conc => \*8 :1`},
		{"allow three devices an account", `
			CL.TAKE devices:ann 3/30d,algo=conc ID phone-2 => \*8 :0
			CL.TAKE devices:ann 3/30d,algo=conc ID laptop => \*8 :0
			3 $1 => \*8 :0
			CL.TAKE devices:ann 3/30d,algo=conc ID phone-4 => \*8 :1`},
		{"let one refill a cache, not a herd", `
			$1 => \*8 :0
			2 $1 => \*8 :1`},
		{"do it once a day", `
			$1 => \*7 :0
			2 $1 => \*7 :1`},
		{"start slowly after a rest", `$1 => \*7 :0 :100`},
		{"try a limit that never denies", `
			3 $1 => \*7 :0
			CL.STATS => shadow_limited :2`},
		{"change a limit without deploying", `
			$1 => :1
			$2 => \*7 :0 :100 :99`},
		{"give one customer more", `
			$1 => :1
			$2 => \*7 :0 :1000 :999`},
		{"exempt our own net", `
			$1 => :1
			3 CL.TAKE ip:10.1.2.3 1/1h => \*7 :0`},
		{"keep somebody out", `
			$1 => :1
			CL.TAKE user:13 100/1m => \*7 :1 :0 :0 :-1`},
		{"see what is left, or why not", `
			CL.TAKE user:42 100/1h => \*7 :0
			$1 => \$9 remaining :99
			$2 => would pass`},
		{"count without a limit", `
			$1 => \*2 :1 :1
			$1 => \*2 :2 :1`},
		{"sell no more than there is", `
			$1 => \+OK
			3 $2 => \*2 :\d :-1
			$2 => \*2 :0 :0`},
		{"replace a Lua script by a call", `$1 => \*7 :0 :100 :99`},
	})
	if got := c.Do("FLUSHALL"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	for _, key := range []string{"user:7:a", "user:7:b", "user:8:a"} {
		c.Do("CL.TAKE", key, "1/1h")
	}
	shown := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(celldtest.ReadFile(t, "../../docs/how-to/wishes.md"))
	host, port := harness.HostPort(c.RemoteAddr().String())
	script := strings.ReplaceAll(shown[1], "redis-cli", celldtest.Need(t, "redis-cli")+" -h "+host+" -p "+port)
	if out, err := harness.Bash(t, script, t.TempDir(), nil).CombinedOutput(); err != nil || string(out) != "2\n" {
		t.Errorf("%v: %s", err, out)
	}
	if got := c.Do("EXISTS", "user:7:a", "user:7:b", "user:8:a"); got != ":1\r\n" {
		t.Errorf("left: %s", got)
	}
}

// do sends the commands of a page in docs/how-to/. Each row of it must be told of, and each of its commands be sent.
func do(t *testing.T, c *harness.Conn, page string, rows []told) {
	t.Helper()
	lease := regexp.MustCompile(`\*8(?: :\S+){7} :(\d+) $`)
	shown := map[string][]string{}
	text := celldtest.ReadFile(t, "../../docs/how-to", page+".md")
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|`]+) \\| (.*`.*) \\|$").FindAllStringSubmatch(text, -1) {
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			shown[row[1]] = append(shown[row[1]], span[1])
		}
	}
	for _, row := range rows {
		commands, id, sent := shown[row.row], "", map[string]bool{}
		if delete(shown, row.row); len(commands) == 0 {
			t.Errorf("%s has no %s", page, row.row)
		}
		if page == "wishes" {
			c.Do("FLUSHALL")
			c.Do("CL.STATS", "RESET")
		}
		for line := range strings.Lines(strings.TrimSpace(row.shows)) {
			command, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
			times := 1
			if first, rest, _ := strings.Cut(command, " "); len(first) < 3 && first[0] != '$' {
				times, _ = strconv.Atoi(first)
				command = rest
			}
			for i, shown := range commands {
				if command == "$"+strconv.Itoa(i+1) {
					command = shown
					sent[command] = true
				}
			}
			for range times {
				got := strings.ReplaceAll(c.Do(strings.Fields(strings.ReplaceAll(command, "1795369162355930", id))...), "\r\n", " ")
				if granted := lease.FindStringSubmatch(got); granted != nil && granted[1] != "0" {
					id = granted[1]
				}
				if !regexp.MustCompile(want).MatchString(got) {
					t.Errorf("%s, %s: %s answers %s, want %s", page, row.row, command, got, want)
				}
			}
		}
		if len(sent) < len(commands) {
			t.Errorf("%s, %s: only %v of %q are sent", page, row.row, sent, commands)
		}
	}
	for row := range shown {
		t.Errorf("%s, %s: not tried", page, row)
	}
}
