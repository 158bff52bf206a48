package resp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/describe"
	"celld/resp/command/spec"
	"celld/resp/session/sessiontest"
)

// Every row says all that COMMAND and its kin tell about it, and answers something, whatever it is asked.
func TestRows(t *testing.T) {
	table, c := tableOf(sessiontest.Settings(t)), newWorld(t).connect()
	documented := regexp.MustCompile(`\$4\r\nname\r\n\$\d+\r\n(.*)\r\n\$4\r\ntype\r\n\$\d+\r\n(.*)\r\n`)
	table.Each(func(row *command.Row) {
		name := row.FullName()
		if row.Summary == "" || row.Group == "" || row.Arity == 0 || row.Parent == nil && table.Find([]byte(row.Name)) != row ||
			row.Name != strings.ToLower(row.Name) {
			t.Errorf("%s: summary %q, group %q, arity %d", name, row.Summary, row.Group, row.Arity)
		}
		if strings.HasPrefix(name, "cl.") != (row.Group == spec.GroupLimit) {
			t.Errorf("%s is of the group %s", name, row.Group)
		}
		if row.Run == nil && len(row.Sub) == 0 {
			t.Errorf("%s does nothing", name)
		}
		if row.Flags&spec.Write != 0 && row.Flags&spec.Readonly != 0 {
			t.Errorf("%s both writes and does not", name)
		}
		for _, arg := range documented.FindAllStringSubmatch(c.do("COMMAND", "DOCS", name), -1) {
			if arg[1] == "" || arg[2] == "" || strings.ContainsAny(arg[1], "[]|.") {
				t.Errorf("%s: usage %q has the argument %q", name, row.Usage, arg)
			}
		}
	})
}

// Each command with 0 to 6 nonsense arguments answers exactly one reply, and the next command is answered.
func TestEveryCommandAnswersOnce(t *testing.T) {
	tableOf(sessiontest.Settings(t)).Each(func(row *command.Row) {
		switch row.FullName() {
		case "quit", "shutdown", "monitor", "client|reply":
			return
		}
		for n := range 7 {
			c := newWorld(t).connect()
			words := strings.Split(row.FullName(), "|")
			for i := range n {
				words = append(words, []string{"a", "1", "b", "2", "c", "3"}[i])
			}
			c.do(words...)
			c.tr.Take()
			c.do("MULTI")
			c.do(words...)
			c.do("DISCARD")
			got := c.do("ECHO", "marker")
			if got != "$6\r\nmarker\r\n" {
				t.Errorf("%v: then %q", words, got)
			}
		}
	})
}

// A call with too few or too many arguments is the same error wherever it comes from.
func TestWrongArityEverywhere(t *testing.T) {
	w := newWorld(t)
	wrong := regexp.MustCompile(`^-ERR (wrong number of arguments for '.*' command|at most 1000 arguments are taken)\r\n$`)
	tableOf(sessiontest.Settings(t)).Each(func(row *command.Row) {
		words, found := strings.Split(row.FullName(), "|"), 0
		for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 1002, 1003, 1100} {
			if n < len(words) || row.Name == "exec" { // whose text is another
				continue
			}
			call, c := append(words, slices.Repeat([]string{"1"}, n-len(words))...), w.connect()
			c.do("MULTI")
			text := c.do(call...)
			if !wrong.MatchString(text) {
				continue
			}
			found++
			if got := c.do("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
				t.Errorf("EXEC after %s with %d arguments: %.100q", row.FullName(), n, got)
			}
			for way, want := range map[string]string{
				"":                   text,
				"ACL DRYRUN default": text,
				"EVAL return(redis.call(unpack(ARGV))) 0": "-ERR Wrong number of args calling Redis command from script",
				"COMMAND GETKEYS":                         "-ERR (The command has no key|Invalid number of) arguments|-ERR wrong number .*getkeys",
			} {
				got := c.do(append(strings.Fields(way), call...)...)
				if !regexp.MustCompile("^(" + want + ")").MatchString(got) {
					t.Errorf("%s %s with %d arguments: %.100q, not %q", way, row.FullName(), n, got, want)
				}
			}
		}
		if found == 0 && !row.TakesMany() && len(row.Sub) == 0 && row.Name != "exec" {
			t.Errorf("%s takes any number", row.FullName())
		}
	})
}

func TestUnknownCommand(t *testing.T) {
	c := newWorld(t).connect()
	c.want("foo", "-ERR unknown command 'foo', with args beginning with: \r\n")
	c.want("foo a b", "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n")
	c.want("client foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n")
	if got := c.do(strings.Repeat("x", 1000), strings.Repeat("y", 1000)); len(got) > 400 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestCommandIntrospection(t *testing.T) {
	c := newWorld(t).connect()
	c.want("COMMAND COUNT", fmt.Sprintf(":%d\r\n", len(Commands(sessiontest.Settings(t)))))
	c.want("COMMAND GETKEYS CL.THROTTLE k 1 2 3", "*1\r\n$1\r\nk\r\n")
	c.want("COMMAND GETKEYS DEL a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n")
	c.want("COMMAND GETKEYS OBJECT ENCODING k", "*1\r\n$1\r\nk\r\n")
	c.want("COMMAND GETKEYS PING a", "-"+describe.ErrNoKeysCommand+"\r\n")
	c.want("COMMAND GETKEYS NOSUCH k", "-"+describe.ErrBadCommand+"\r\n")
	c.want("COMMAND GETKEYS SET k", "-"+describe.ErrBadCommandArgs+"\r\n")
	c.want("COMMAND LIST FILTERBY MODULE redis-cell", "*1\r\n$11\r\ncl.throttle\r\n")
	c.want("COMMAND LIST FILTERBY PATTERN *expiret*", "*2\r\n$10\r\nexpiretime\r\n$11\r\npexpiretime\r\n")
	c.want("COMMAND INFO nosuch", "*1\r\n$-1\r\n")
	got := c.do("COMMAND", "INFO", "get")
	if !strings.HasPrefix(got, "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n") {
		t.Errorf("%q", got)
	}
	if got := c.do("COMMAND", "DOCS", "cl.throttle"); !strings.Contains(got, "max_burst") || !strings.Contains(got, "optional") {
		t.Errorf("%q", got)
	}
}

// Commands that go through names of a short list at once take 1000 of them at most.
func TestManyNames(t *testing.T) {
	p := newWorld(t).connect()
	for _, command := range []string{
		"CONFIG GET", "COMMAND INFO", "COMMAND DOCS", "LATENCY HISTOGRAM", "LATENCY RESET", "INFO all", "SCRIPT EXISTS", "ACL DELUSER",
		"CLIENT KILL",
	} {
		if got := p.do(strings.Fields(command + strings.Repeat(" x", 1001))...); got != "-ERR at most 1000 arguments are taken\r\n" {
			t.Errorf("%s: %.60q", command, got)
		}
		got := p.do(strings.Fields(command + strings.Repeat(" x", 1000-len(strings.Fields(command))%2))...)
		if strings.Contains(got, "at most") {
			t.Errorf("%s of fewer: %.60q", command, got)
		}
	}
}
