package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"celld/resp/config"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// UsageError is a mistake in the command line or the environment.
type UsageError struct{ error }

// Wrong makes a UsageError of each error that errors.Join has joined.
func Wrong(err error) error {
	var wrong []error
	for _, one := range Each(err) {
		wrong = append(wrong, UsageError{one})
	}
	return errors.Join(wrong...)
}

// foreign takes what celld does not know from the arguments that it was given as another program, and warns of each.
func foreign(flags *pflag.FlagSet, args []string) (known, warnings []string) {
	for len(args) > 0 {
		n := 1
		name, _, has := strings.Cut(strings.TrimPrefix(args[0], "--"), "=")
		flag := flags.Lookup(name)
		if flag != nil && !has && flag.NoOptDefVal == "" {
			n = min(2, len(args)) // its value
		}
		if strings.HasPrefix(args[0], "--") && flag != nil {
			known = append(known, args[:n]...)
		} else {
			n = 1
			word, _, _ := strings.Cut(args[0], "=")
			warnings = append(warnings, fmt.Sprintf("the argument %.64q: celld does not know it, and leaves it out", word))
		}
		args = args[n:]
	}
	return known, warnings
}

// parse reads the command line into flags, and returns its words. wrong has a UsageError for each value that a flag cannot have, and for
// each unknown flag. stop is an error after which nothing was read.
func parse(flags *pflag.FlagSet, cfg *config.Config, args []string) (words []string, wrong []error, stop error) {
	set := func(flag *pflag.Flag, value string) error {
		if err := flags.Set(flag.Name, value); err != nil {
			wrong = append(wrong, badValue(cfg, "--"+flag.Name, flag.Name, value, err))
		}
		return nil
	}
	for {
		err := flags.ParseAll(args, set)
		words = append(words, flags.Args()...)
		none := (*pflag.NotExistError)(nil)
		if !errors.As(err, &none) {
			if err != nil && !errors.Is(err, pflag.ErrHelp) {
				err = UsageError{err}
			}
			return words, wrong, err
		}
		name := none.GetSpecifiedName()
		at := slices.IndexFunc(args, func(arg string) bool { return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=") })
		if at < 0 { // a letter after one dash
			return words, wrong, oneDash(cfg, args, err)
		}
		wrong = append(wrong, UsageError{fmt.Errorf("unknown flag --%s%s", name, hintOf(cfg, name))})
		if args = args[at+1:]; len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			args = args[1:] // what was meant as its value
		}
	}
}

// badValue is the mistake of a flag or a variable whose value cannot be read. It says what would be right.
func badValue(cfg *config.Config, where, setting, value string, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	hint := ""
	if s := cfg.Setting(setting); s != nil {
		hint = rightValue(s, value)
	}
	return UsageError{fmt.Errorf("%s %q: %w%s", where, value, err, hint)}
}

// unitNS are the units that settings count in.
var unitNS = map[string]time.Duration{"microseconds": time.Microsecond, "ms": time.Millisecond, "seconds": time.Second}

// rightValue says how to write the value of a setting whose kind does not tell: 60000 where 60s was given for ms.
func rightValue(s *config.Setting, given string) string {
	kind := s.Value.Type()
	if kind == "size" {
		return ", such as 512mb"
	}
	unit, counts := unitNS[kind]
	if !counts {
		return ""
	}
	if d, err := time.ParseDuration(given); err == nil && d >= unit {
		return fmt.Sprintf(": it counts %s, so write %d", kind, d/unit)
	}
	return ": it counts " + kind
}

// redisFlags says what celld has in place of what people give to redis-server.
var redisFlags = map[string]string{
	"config":          noConfig,
	"loadmodule":      "; redis-cell is built in, so leave it out",
	"p":               "; did you mean --port?",
	"a":               "; did you mean --requirepass-file?",
	"daemonize":       "; celld stays in the foreground: systemd or a container runs it behind",
	"logfile":         "; the log goes to standard error",
	"replicaof":       "; instances share limits by --store",
	"cluster-enabled": "; instances share limits by --store",
}

// noConfig is what celld has in place of a file such as redis.conf.
const noConfig = "; there is no configuration file: give flags, or variables such as CELLD_PORT"

// hintOf says what was perhaps meant by an unknown flag.
func hintOf(cfg *config.Config, name string) string {
	if hint, ok := redisFlags[name]; ok {
		return hint
	}
	return suggest(cfg, name, flagOf)
}

// oneDash is the mistake of a flag with one dash.
func oneDash(cfg *config.Config, args []string, err error) error {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && cfg.Setting(name) != nil {
			return UsageError{fmt.Errorf("unknown flag -%s; did you mean --%[1]s?", name)}
		}
		if hint, ok := redisFlags[name]; ok && strings.HasPrefix(arg, "-") {
			return UsageError{fmt.Errorf("unknown flag -%s%s", name, hint)}
		}
	}
	return UsageError{err}
}

func flagOf(name string) string { return "--" + name }

func variableOf(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// suggest says which setting was perhaps meant, as write writes it.
func suggest(cfg *config.Config, given string, write func(name string) string) string {
	given = strings.ToLower(given)
	best, least := "", 2+len(given)/3 // what is further apart is another word
	for _, s := range cfg.Settings() {
		apart := levenshtein.ComputeDistance(given, s.Name)
		if len(given) > 2 && strings.HasPrefix(s.Name, given) {
			apart = min(apart, 2)
		}
		if apart < least && apart < len(given) {
			best, least = s.Name, apart
		}
	}
	if best == "" {
		return "; see celld --help"
	}
	return "; did you mean " + write(best) + "?"
}
