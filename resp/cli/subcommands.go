package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"celld/resp/config"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// Subcommand is an action of celld that does not start the server.
type Subcommand struct {
	Name, Args, Summary string
	Help                string   // for celld help NAME
	Flags               []string // that it uses
}

var (
	serverFlags = []string{"bind", "port", "unixsocket", "requirepass", "requirepass-file", "probe-user", "probe-password", "tls-port",
		"tls-cert-file", "tls-key-file", "tls-key-file-pass", "tls-client-cert-file", "tls-client-key-file"}

	// Subcommands are those of --help, in its order.
	Subcommands = []Subcommand{
		{"ping", "[flags]", "exit with 0 if the server that these flags describe is alive", `
Asks the server whether it is alive. Use it where a dead server is restarted, such as in a livenessProbe. It asks
all of the server's addresses at once and exits with 0 when one answers. An error from a living server is an
answer: it is loading or runs a long script, it has --maxclients connections, or it wants another password. celld
ping prints that error. Otherwise it prints one line and exits with 1, within 6 seconds.
` + describes, serverFlags},
		{"ready", "[flags]", "exit with 0 if that server serves requests", `
Asks the server whether it serves requests. Use it to wait for the server, such as in a startupProbe or a
readinessProbe. It exits with 0 when the server answers PING with PONG, and otherwise with 1. A server that got
SIGTERM and is in its --shutdown-delay is not ready, although it serves, so that it gets no new clients. Nor is
a server ready while its engine (--store) is away or refuses calls, or while its disk refuses changes. /readyz of
the HTTP port says the same.
` + describes, serverFlags},
		{"help", "[subcommand]", "print this, or the help of a subcommand", "", nil},
		{"version", "[-v]", "print the version, with -v also the commit and the modules that it was built from", "", nil},
	}
)

const describes = `
Give it the same flags and environment as the server. Without flags it takes those of process 1 if that is celld,
as it is in a container. With TLS it shows --tls-client-cert-file, or the server's own certificate, and verifies none.
`

// runSubcommand runs the subcommand in words. hasFlags says whether the command line has more than one word.
func runSubcommand(cfg *config.Config, flags *pflag.FlagSet, words []string, hasFlags bool, version string) error {
	name, more := words[0], words[1:]
	switch {
	case name == "help":
		return help(os.Stdout, cfg, more)
	case findSubcommand(name) == nil:
		return unknown(name)
	case len(more) > 0:
		return unknown(more[0])
	case name == "version":
		printVersion(os.Stdout, version, isSet(flags, "verbose"))
		return nil
	case isSet(flags, "verbose"):
		return notVerbose
	}
	if !hasFlags { // process 1 has accepted its own flags
		_ = flags.Parse(flagsOfFirst(os.DirFS("/proc"), os.Args[0]))
	}
	if wrong := readEnvironment(flags, cfg); len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	if err := cfg.LoadPassword(flags.Changed); err != nil {
		return UsageError{err}
	}
	return ping(cfg, flags, name == "ready")
}

// notVerbose is what -v gets without the version.
var notVerbose = UsageError{errors.New("-v is for celld version")}

func isSet(flags *pflag.FlagSet, name string) bool {
	return flags.Lookup(name).Value.String() == "true"
}

// unknown is the mistake of a word that is no subcommand.
func unknown(word string) error {
	hint := "see celld --help"
	if strings.HasSuffix(word, ".conf") {
		return UsageError{fmt.Errorf("unknown argument %q%s", word, noConfig)}
	}
	for _, s := range Subcommands {
		if levenshtein.ComputeDistance(word, s.Name) < 2 {
			hint = "did you mean celld " + s.Name + "?"
		}
	}
	if word == "check" || word == "version" || word == "help" {
		hint = "did you mean --" + word + "?"
	}
	return UsageError{fmt.Errorf("unknown argument %q; %s", word, hint)}
}

func findSubcommand(name string) *Subcommand {
	if i := slices.IndexFunc(Subcommands, func(s Subcommand) bool { return s.Name == name }); i >= 0 {
		return &Subcommands[i]
	}
	return nil
}

func (s *Subcommand) usage() string { return "celld " + s.Name + " " + s.Args }

// help prints the help of celld, or of the subcommand in words.
func help(w io.Writer, cfg *config.Config, words []string) error {
	if len(words) == 0 {
		printHelp(w, cfg)
		return nil
	}
	sub := findSubcommand(words[0])
	if sub == nil {
		return unknown(words[0])
	}
	if len(words) > 1 {
		return unknown(words[1])
	}
	fmt.Fprintln(w, "Usage:", sub.usage())
	if sub.Help == "" {
		fmt.Fprintf(w, "\n%s\n", sub.Summary)
		return nil
	}
	fmt.Fprintf(w, "%s\nFlags:\n", sub.Help)
	printFlags(w, cfg, func(s config.Setting) bool { return slices.Contains(sub.Flags, s.Name) })
	return nil
}

func printHelp(w io.Writer, cfg *config.Config) {
	fmt.Fprint(w, `celld is a rate limiter that Redis clients can ask. It answers redis-cell's CL.THROTTLE, its own CL.TAKE, and the
commands that Redis clients and tools send.

Usage:
  celld [flags]            start the server
`)
	for _, sub := range Subcommands {
		fmt.Fprintf(w, "  %-24s %s\n", sub.usage(), sub.Summary)
	}
	fmt.Fprint(w, `
Each flag is also an environment variable: --max-keys is CELLD_MAX_KEYS. The command line wins.
Sizes are written as 1000, 1k (1000), 1kb (1024), 1mb or 1gb. CONFIG SET changes most settings at run time.
`)
	group := ""
	for _, s := range cfg.Settings() {
		if s.Group == group {
			continue
		}
		group = s.Group
		fmt.Fprintf(w, "\n%s:\n", group)
		printFlags(w, cfg, func(s config.Setting) bool { return s.Group == group })
	}
	fmt.Fprint(w, "\nOther:\n      --check     check these settings and their files, and exit\n"+
		"      --help      print this\n      --version   print the version\n")
}

// printFlags prints those settings that are wanted.
func printFlags(w io.Writer, cfg *config.Config, wanted func(config.Setting) bool) {
	rows := pflag.NewFlagSet("", pflag.ContinueOnError)
	rows.SortFlags = false
	for _, s := range cfg.Settings() {
		if wanted(s) {
			rows.VarPF(s.Value, s.Name, "", s.Help).DefValue = s.Default
		}
	}
	fmt.Fprint(w, rows.FlagUsagesWrapped(120))
}
