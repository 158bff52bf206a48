package link

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// What a node says of itself is one line of the log each, a warning where limits are at risk, and again only when it changes.
func TestCheck(t *testing.T) {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	for _, test := range []struct {
		info, save string        // "": refused
		ahead      time.Duration // of its clock
		want       []string      // ", WARN" is a warning's
	}{
		{"redis_version:7.2.4\r\nvalkey_version:8.1.1\r\nrole:master\r\nmaxmemory:9\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n",
			"", 0, []string{"version Valkey 8.1.1", "role master", "eviction policy noeviction", "persistence append-only file", "clock"}},
		{"redis_version:6.0.16\r\nrole:slave\r\nmaxmemory:9\r\nmaxmemory_policy:volatile-lru\r\naof_enabled:0\r\n", "-", time.Second,
			[]string{"version Redis 6.0.16, WARN", "role slave, WARN", "eviction policy volatile-lru, WARN", "persistence none, WARN",
				"clock, WARN"}},
		{"redis_version:5.0.1\r\nredis_mode:sentinel\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n",
			"60 1", -time.Second,
			[]string{"version Redis 5.0.1, WARN", "role sentinel, WARN", "eviction policy allkeys-lru, no maxmemory",
				"persistence snapshots", "clock, WARN"}},
		{"redis_version:6.2.0\r\naof_enabled:0\r\n", "", 50 * time.Millisecond,
			[]string{"version Redis 6.2.0", "role not known", "eviction policy not known",
				"persistence no append-only file; CONFIG GET is refused, so snapshots are not known", "clock"}},
		{"", "", 0, []string{"version not known", "role not known", "eviction policy not known", "persistence not known", "clock not known"}},
	} {
		fake := celldtest.NewAilingAt(t, "127.0.0.1:0", func(command string) string {
			switch {
			case command == "INFO" && test.info != "":
				return bulk(test.info)
			case command == "CONFIG GET save" && test.save != "":
				return "*2\r\n" + bulk("save") + bulk(strings.TrimPrefix(test.save, "-"))
			case command == "TIME" && test.info != "":
				now := time.Now().Add(test.ahead)
				return "*2\r\n" + bulk(fmt.Sprint(now.Unix())) + bulk(fmt.Sprint(now.Nanosecond()/1000))
			}
			return ""
		})
		var log lines
		s := openLink(t, Options{URL: "redis://" + fake.Socket, Log: log.log()})
		eventually(t, "checked", func() bool { return strings.Contains(log.String(), "engine's clock") })
		got := log.String()
		for _, want := range test.want {
			thing, warns := strings.CutSuffix(want, ", WARN")
			name, value, _ := strings.Cut(thing, " ")
			if name == "eviction" {
				name, value = "eviction policy", strings.TrimPrefix(thing, "eviction policy ")
			}
			level := map[bool]string{false: "INFO", true: "WARN"}[warns]
			if line := fmt.Sprintf(`"level":%q,"msg":"the engine's %s","node":%q,"is":"%s`, level, name, fake.Socket,
				value); !strings.Contains(got, line) {
				t.Errorf("the log lacks %s\n%s", line, got)
			}
		}
		s.check(fake.Socket, (*s.client.Load()).Nodes()[fake.Socket])
		if again := log.String(); strings.Count(again, `"msg":"the engine's`) != 5 {
			t.Errorf("lines about the engine, after a second look:\n%s", again)
		}
	}
}

// A node that runs a script is asked again, and until then what was known of it stays.
func TestCheckOfABusyNode(t *testing.T) {
	t.Parallel()
	info := func(command string) string {
		if command == "INFO" {
			return "$21\r\nredis_version:7.0.15\r\n\r\n"
		}
		return ""
	}
	fake := celldtest.NewAilingAt(t, "127.0.0.1:0", info)
	var log lines
	s := openLink(t, Options{URL: "redis://" + fake.Socket, Log: log.log()})
	eventually(t, "checked", func() bool { return strings.Contains(log.String(), "engine's clock") })
	before := log.String()
	fake.AnswersBy(func(command string) string {
		if command == "PING" {
			return ""
		}
		return "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
	})
	asked := fake.Asks("INFO")
	s.check(fake.Socket, (*s.client.Load()).Nodes()[fake.Socket])
	fake.AnswersBy(info)
	eventually(t, "it is asked again", func() bool { return fake.Asks("INFO") > asked+1 })
	if after := log.String(); after != before {
		t.Errorf("logged: %s", strings.TrimPrefix(after, before))
	}
}
