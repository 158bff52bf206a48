// Package cli reads celld's command line and environment, and runs the subcommands. It knows no sessions.
//
//	command, err := cli.Parse(os.Args[1:], version, wings) // nil: a subcommand has run
//	command.Config                                  // the settings, for the server
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"celld/resp"
	"celld/resp/config"

	"github.com/spf13/pflag"
)

// Command is a command line that starts the server.
type Command struct {
	Config  *config.Config
	Files   resp.Files // that the settings name
	Check   bool       // only say what is wrong with it
	flags   *pflag.FlagSet
	ignored []string // what the environment asks for, and celld does not do
}

// Given says whether the command line or the environment sets a setting.
func (c *Command) Given(setting string) bool { return c.flags.Changed(setting) }

// Idle names what was given and does nothing.
func (c *Command) Idle() []string { return slices.Concat(c.ignored, c.Config.Idle(c.Given)) }

// Parse reads the command line, without the program's name, and the environment. It returns nil after it has run a subcommand.
// The error is the subcommand's, or joins a UsageError for each mistake. With --check there is a Command also then.
func Parse(args []string, version string, wings []resp.Wing) (*Command, error) {
	cfg := resp.Settings(wings...)
	flags := defineFlags(cfg)
	var forgiven []string
	if slices.ContainsFunc(wings, func(w resp.Wing) bool { return w.Foreign != nil && w.Foreign(os.Args[0]) }) {
		args, forgiven = foreign(flags, args)
	}
	words, wrong, err := parse(flags, cfg, args)
	check := isSet(flags, "check")
	switch {
	case errors.Is(err, pflag.ErrHelp):
		if len(words) > 0 && words[0] == "help" {
			words = words[1:]
		}
		return nil, help(os.Stdout, cfg, words)
	case err != nil: // what follows has not been read
		return nil, errors.Join(append(wrong, err)...)
	case len(wrong) == 0 && isSet(flags, "version"):
		printVersion(os.Stdout, version, isSet(flags, "verbose"))
		return nil, nil
	case len(words) > 0 && check:
		return nil, unknown(words[0])
	case len(words) > 0 && len(wrong) > 0:
		return nil, errors.Join(wrong...)
	case len(words) > 0:
		return nil, runSubcommand(cfg, flags, words, len(args) > 1, version)
	case isSet(flags, "verbose"):
		return nil, notVerbose
	}
	wrong = append(wrong, readEnvironment(flags, cfg)...)
	ignored, bad := readWings(flags, cfg, wings)
	wrong = append(wrong, bad...)
	files, unread := resp.ReadFiles(cfg)
	for _, err := range Each(errors.Join(unread, cfg.Load(flags.Changed))) {
		wrong = append(wrong, UsageError{err})
	}
	command := &Command{cfg, files, check, flags, append(forgiven, ignored...)}
	if len(wrong) > 0 && !check {
		command = nil
	}
	return command, errors.Join(wrong...)
}

// readWings reads what wings know of the environment. It returns what celld does not do, and what is wrong.
func readWings(flags *pflag.FlagSet, cfg *config.Config, wings []resp.Wing) (ignored []string, wrong []error) {
	environment := config.Environment{Program: os.Args[0], Given: flags.Changed,
		Set: func(setting, from, value string) {
			if flags.Changed(setting) {
				return
			}
			if err := flags.Set(setting, value); err != nil {
				wrong = append(wrong, badValue(cfg, "environment variable "+from, setting, value, err))
			}
		},
		Fail: func(err error) { wrong = append(wrong, UsageError{err}) },
	}
	for _, w := range wings {
		if w.Environ != nil {
			ignored = append(ignored, w.Environ(environment)...)
		}
	}
	return ignored, wrong
}

// Each returns the errors that errors.Join has joined, none for nil.
func Each(err error) (list []error) {
	joined, several := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case !several:
		list = append(list, err)
	default:
		for _, one := range joined.Unwrap() {
			list = append(list, Each(one)...)
		}
	}
	return list
}

func defineFlags(cfg *config.Config) *pflag.FlagSet {
	flags := pflag.NewFlagSet("celld", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.SortFlags = false
	for _, s := range cfg.Settings() {
		flags.Var(s.Value, s.Name, s.Help)
	}
	flags.Bool("check", false, "check these settings and their files, and exit")
	flags.Bool("version", false, "print the version")
	flags.BoolP("verbose", "v", false, "with the version, what it was built from")
	return flags
}

const envPrefix = "CELLD_"

// serviceLink matches the variables that Kubernetes sets in every pod if a Service is named celld.
var serviceLink = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^CELLD(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)=`)
})

// readEnvironment applies CELLD_ variables to settings that the command line does not set. It returns a UsageError for each mistake.
func readEnvironment(flags *pflag.FlagSet, cfg *config.Config) (wrong []error) {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
		flag := flags.Lookup(setting)
		switch {
		case serviceLink().MatchString(entry) && (flag == nil || strings.Contains(value, "://")):
		case flag == nil || flag.Name == "version" || flag.Name == "verbose" || flag.Name == "check":
			wrong = append(wrong, UsageError{fmt.Errorf("unknown environment variable %s%s", name, suggest(cfg, setting, variableOf))})
		case !flag.Changed && value != "": // Compose files pass a variable that is not set as empty
			if err := flags.Set(flag.Name, value); err != nil {
				wrong = append(wrong, badValue(cfg, "environment variable "+name, setting, value, err))
			}
		}
	}
	return wrong
}
