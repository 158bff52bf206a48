package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"celld/resp"
	"celld/resp/config"
)

// printed returns what do prints.
func printed(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = before }()
	do()
	_, _ = file.Seek(0, io.SeekStart)
	text, _ := io.ReadAll(file)
	return string(text)
}

// Where celld is called as another program, arguments that it does not know are left out, and told. What is wrong else remains.
func TestArgumentsOfOthers(t *testing.T) {
	unsetOurs(t)
	for _, as := range []bool{false, true} {
		wings := []resp.Wing{{Part: config.Part{Rows: func(*config.Config) []config.Setting { return nil },
			Foreign: func(string) bool { return as }}}}
		args := strings.Fields("--theirs=secret -v=2 word --port 7 --check --other x --max-keys=5")
		command, err := Parse(args, "1.2", wings)
		if (err == nil) != as || (command != nil) != as {
			t.Fatalf("%v: %v", as, err)
		}
		if !as {
			continue
		}
		var want []string
		for _, word := range []string{"--theirs", "-v", "word", "--other", "x"} {
			want = append(want, fmt.Sprintf("the argument %q: celld does not know it, and leaves it out", word))
		}
		if command.Config.Port.Get() != 7 || command.Config.MaxKeys.Get() != 5 || !command.Check || !slices.Equal(command.Idle(), want) {
			t.Errorf("%v, and told is %q", command.Config.Port.Get(), command.Idle())
		}
		for _, wrong := range []string{"--port x", "--port", "--version=maybe"} {
			if _, err = Parse(strings.Fields("--theirs "+wrong), "1.2", wings); err == nil {
				t.Errorf("%s is taken", wrong)
			}
		}
	}
}

// A command line starts the server, prints something, or is a mistake, which the error names.
func TestParse(t *testing.T) {
	unsetOurs(t)
	unreadable := filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		args   string
		starts bool
		prints string // what begins with that
		wrong  string // the errors, joined by semicolons, each up to its last word here
	}{
		{"", true, "", ""},
		{"--port 7 --timeout=9", true, "", ""},
		{"--check", true, "", ""},
		{"--port x", false, "", `--port "x": argument couldn't be parsed into an integer`},
		{"--port x --timeout y", false, "", `--port "x": ; --timeout "y": argument couldn't be parsed into an integer: it counts seconds`},
		{"--port x --check", true, "", `--port "x": `},
		{"--port x --none --timeout y", false, "", `--port "x": ; unknown flag --none; see celld --help; --timeout "y": `},
		{"--prot 7", false, "", "unknown flag --prot; did you mean --port?"},
		{"--max-key=7 --prot --timeout y --maxmemory lots", false, "", "unknown flag --max-key; did you mean --max-keys?; " +
			`unknown flag --prot; did you mean --port?; --timeout "y": ; --maxmemory "lots": argument must be a memory value, such as 512mb`},
		{"--wait-max 60s", false, "", `--wait-max "60s": argument couldn't be parsed into an integer: it counts ms, so write 60000`},
		{"--shutdown-delay 2m", false, "", `--shutdown-delay "2m": argument couldn't be parsed into an integer: it counts seconds, so write 120`},
		{"--timeout 20ms", false, "", `--timeout "20ms": argument couldn't be parsed into an integer: it counts seconds`},
		{"--zzz", false, "", "unknown flag --zzz; see celld --help"},
		{"redis.conf", false, "", `unknown argument "redis.conf"; there is no configuration file: give flags, or variables such as CELLD_PORT`},
		{"--config f", false, "", "unknown flag --config; there is no configuration file: give flags, or variables such as CELLD_PORT"},
		{"--loadmodule m.so", false, "", "unknown flag --loadmodule; redis-cell is built in, so leave it out"},
		{"-p 7000", false, "", "unknown flag -p; did you mean --port?"},
		{"--save 60 1", false, "", `--save "60": argument must be pairs of seconds and changes in quotes, such as '3600 1 300 100'`},
		{"-port 7", false, "", "unknown flag -port; did you mean --port?"},
		{"--policy f", false, "", "unknown flag --policy; did you mean --policies?"},
		{"--MAX-KEYS 7", false, "", "unknown flag --MAX-KEYS; did you mean --max-keys?"},
		{"pong", false, "", `unknown argument "pong"; did you mean celld ping?`},
		{"check", false, "", `unknown argument "check"; did you mean --check?`},
		{"-x --prot 1", false, "", "unknown shorthand flag: 'x' in -x"},
		{"--port", false, "", "flag needs an argument: --port"},
		{"--requirepass-file " + unreadable, false, "", "read the password: "},
		{"--requirepass-file " + unreadable + " --loglevel-file " + unreadable, false, "", "read the loglevel: ; read the password: "},
		{"--policies " + unreadable + " --check", true, "", "read the policies: open "},
		{"--verbose", false, "", "-v is for celld version"},
		{"--version", false, "celld 1.2 (go", ""},
		{"version", false, "celld 1.2 (go", ""},
		{"version -v", false, "celld 1.2 (go", ""},
		{"--version --port x", false, "", `--port "x": `},
		{"version x", false, "", `unknown argument "x"; see celld --help`},
		{"x", false, "", `unknown argument "x"`},
		{"x --check", false, "", `unknown argument "x"`},
		{"x --port x", false, "", `--port "x": `},
		{"ping x", false, "", `unknown argument "x"`},
		{"ping -v", false, "", "-v is for celld version"},
		{"ping --requirepass-file " + unreadable, false, "", "read the password: "},
		{"ping --port 0", false, "", "ping: --port 0 is whatever port was free"},
		{"ready --port 0", false, "", "ready: --port 0 is whatever port was free"},
		{"--help", false, "celld is a rate limiter", ""},
		{"help", false, "celld is a rate limiter", ""},
		{"help ready", false, "Usage: celld ready [flags]\n\nAsks the server whether it serves", ""},
		{"ready --help", false, "Usage: celld ready [flags]\n\nAsks the server whether it serves", ""},
		{"help ready --help", false, "Usage: celld ready [flags]\n\nAsks the server whether it serves", ""},
		{"help help", false, "Usage: celld help [subcommand]\n\nprint this, or the help of a subcommand\n", ""},
		{"help x", false, "", `unknown argument "x"`},
		{"help ping x", false, "", `unknown argument "x"`},
	} {
		var command *Command
		var err error
		text := printed(t, func() { command, err = Parse(strings.Fields(test.args), "1.2", nil) })
		var wrong []string
		if test.wrong != "" { // a hint follows a semicolon, too
			hints := strings.NewReplacer("; see ", ";\tsee ", "; did ", ";\tdid ", "; there ", ";\tthere ", "; redis", ";\tredis")
			whole := hints.Replace(test.wrong)
			for _, one := range strings.Split(whole, "; ") {
				wrong = append(wrong, strings.ReplaceAll(one, "\t", " "))
			}
		}
		list := Each(err)
		if (command != nil) != test.starts || len(list) != len(wrong) || !strings.HasPrefix(text, test.prints) ||
			test.prints == "" && text != "" {
			t.Errorf("%s: %v, %v, %.60q", test.args, command != nil, list, text)
			continue
		}
		for i := range list {
			if !strings.HasPrefix(list[i].Error(), wrong[i]) {
				t.Errorf("%s: %v, want %s", test.args, list[i], wrong[i])
			}
			if usage := errors.As(list[i], new(UsageError)); usage == strings.Contains(wrong[i], "whatever port") {
				t.Errorf("%s: %v is of the user: %v", test.args, list[i], usage)
			}
		}
		if command != nil && (command.Check != strings.Contains(test.args, "--check") ||
			command.Given("timeout") != strings.Contains(test.args, "timeout") ||
			test.args == "--port 7 --timeout=9" && command.Config.Port.Get() != 7) {
			t.Errorf("%s: %+v", test.args, command)
		}
		if strings.HasSuffix(test.args, "version -v") != strings.Contains(text, "\nmain ") {
			t.Errorf("%s: %s", test.args, text)
		}
	}
}

// A duration where a number of units is wanted is told in that unit.
func TestDurationsInUnits(t *testing.T) {
	for setting, want := range map[string]string{
		"wait-max": ": it counts ms, so write 60000", "timeout": ": it counts seconds, so write 60",
		"slowlog-log-slower-than": ": it counts microseconds, so write 60000000", "maxclients": "", "maxmemory": ", such as 512mb",
	} {
		if got := rightValue(config.New().Setting(setting), "60s"); got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}

// unsetOurs unsets the variables that celld reads, until the test ends.
func unsetOurs(t *testing.T) {
	t.Helper()
	for _, name := range os.Environ() {
		if name, _, _ := strings.Cut(name, "="); strings.HasPrefix(name, envPrefix) {
			t.Setenv(name, "") // so that the end of the test sets it again
			os.Unsetenv(name)
		}
	}
}

// Variables set what the command line does not. Those that Kubernetes makes for a Service named celld are none of celld's.
func TestEnvironment(t *testing.T) {
	unsetOurs(t)
	for _, test := range []struct{ variable, args, timeout, wrong string }{
		{"CELLD_TIMEOUT=7", "", "7", ""},
		{"CELLD_TIMEOUT=7", "--timeout 8", "8", ""},
		{"CELLD_TIMEOUT=", "", "0", ""},
		{"CELLD_TIMEOUT=x", "", "0", `environment variable CELLD_TIMEOUT "x": argument couldn't be parsed into an integer: it counts seconds`},
		{"CELLD_TIMEOUT=x", "--timeout 8", "8", ""},
		{"CELLD_NONE=1", "", "0", "unknown environment variable CELLD_NONE; see celld --help"},
		{"CELLD_MAX_KEY=1", "", "0", "unknown environment variable CELLD_MAX_KEY; did you mean CELLD_MAX_KEYS?"},
		{"CELLD_CHECK=true", "", "0", "unknown environment variable CELLD_CHECK; see celld --help"},
		{"CELLD_VERSION=true", "", "0", "unknown environment variable CELLD_VERSION; see celld --help"},
		{"CELLD_VERBOSE=true", "", "0", "unknown environment variable CELLD_VERBOSE; see celld --help"},
		{"CELLD_PORT=tcp://10.0.0.1:6379", "", "0", ""},
		{"CELLD_PORT_6379_TCP_ADDR=10.0.0.1", "", "0", ""},
		{"CELLD_SERVICE_HOST=10.0.0.1", "", "0", ""},
		{"CELLD_A_SERVICE_PORT_RESP=6379", "", "0", ""},
		{"CELLD_PORT=x", "", "0", `environment variable CELLD_PORT "x": argument couldn't be parsed into an integer`},
		{"OTHER_TIMEOUT=7", "", "0", ""},
	} {
		name, value, _ := strings.Cut(test.variable, "=")
		t.Run(test.variable+test.args, func(t *testing.T) {
			t.Setenv(name, value)
			cfg := config.New()
			flags := defineFlags(cfg)
			if err := flags.Parse(strings.Fields(test.args)); err != nil {
				t.Fatal(err)
			}
			wrong := errors.Join(readEnvironment(flags, cfg)...)
			got := cfg.Setting("timeout").Value.String()
			if got != test.timeout || (wrong == nil) != (test.wrong == "") || wrong != nil && wrong.Error() != test.wrong {
				t.Errorf("timeout is %s, %v", got, wrong)
			}
		})
	}
}

// Wings read variables of others. What celld's own variables or flags set stays, and mistakes are the user's.
func TestEnvironmentOfWings(t *testing.T) {
	unsetOurs(t)
	t.Setenv("CELLD_MAX_KEYS", "3")
	t.Setenv("THEIRS", "7")
	wing := resp.Wing{Part: config.Part{Environ: func(e config.Environment) []string {
		for _, setting := range []string{"port", "max-keys", "timeout"} {
			e.Set(setting, "THEIRS", os.Getenv("THEIRS"))
		}
		return []string{"they also want"}
	}}}
	command, err := Parse([]string{"--port", "1"}, "1.2", []resp.Wing{wing})
	if err != nil {
		t.Fatal(err)
	}
	c := command.Config
	if c.Port.Get() != 1 || c.MaxKeys.Get() != 3 || c.Timeout.Get() != 7 || !slices.Equal(command.Idle(), []string{"they also want"}) {
		t.Error(c.Port, c.MaxKeys, c.Timeout, command.Idle())
	}
	t.Setenv("THEIRS", "x")
	if _, err = Parse(nil, "1.2", []resp.Wing{wing}); !errors.As(err, new(UsageError)) ||
		!strings.HasPrefix(err.Error(), `environment variable THEIRS "x": argument couldn't be parsed into an integer`) {
		t.Error(err)
	}
}

// The help names each setting once, in its group, with its default, and that of a subcommand only those that it uses.
func TestHelp(t *testing.T) {
	cfg := config.New()
	var b strings.Builder
	if err := help(&b, cfg, nil); err != nil {
		t.Fatal(err)
	}
	all, group := b.String(), ""
	for _, s := range cfg.Settings() {
		if strings.Count(all, "\n      --"+s.Name+" ") != 1 {
			t.Errorf("--%s is there %d times", s.Name, strings.Count(all, "\n      --"+s.Name+" "))
		}
		if s.Group != group {
			group = s.Group
			if strings.Count(all, "\n\n"+group+":\n      --"+s.Name+" ") != 1 {
				t.Errorf("--%s does not begin %s", s.Name, group)
			}
		}
	}
	for _, text := range []string{
		"\n  celld ready [flags]      exit with 0 if that server serves requests\n", "(default 64mb)",
		"\nEach flag is also an environment variable", "\n\nOther:\n      --check ", "\nUsage:\n  celld [flags]",
	} {
		if !strings.Contains(all, text) {
			t.Errorf("the help lacks %q", text)
		}
	}
	column, description := 0, regexp.MustCompile(`^ {6}--\S+( \S+)? {3,}|^ {8,}`)
	for _, sub := range Subcommands {
		all += sub.Help
	}
	for line := range strings.Lines(all) {
		at := utf8.RuneCountInString(description.FindString(line))
		if is := strings.HasPrefix(line, "      "); is && column != 0 && at != column || utf8.RuneCountInString(line) > 121 {
			t.Errorf("%q begins in column %d, not %d, or is long", line, at, column)
		} else if column = at; !is {
			column = 0
		}
	}
	b.Reset()
	if err := help(&b, cfg, []string{"ping"}); err != nil || strings.Count(b.String(), "\n      --") != len(serverFlags) ||
		!strings.Contains(b.String(), "\nFlags:\n      --bind ") {
		t.Errorf("%v: %s", err, &b)
	}
}
