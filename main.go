// Celld is a rate limiter that speaks Redis's protocol and answers redis-cell's CL.THROTTLE. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"celld/persistence"
	"celld/resp"
	"celld/resp/health"
	"celld/resp/memory"
	"celld/store"

	"github.com/spf13/pflag"
)

const version = "0.1.0"

// Exit codes: 1 for what the machine refused, 2 for what the user asked wrongly.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	cfg := resp.NewConfig()
	flags := defineFlags(cfg)
	args, err := configure(cfg, flags)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		printHelp(os.Stdout, cfg)
	case err != nil:
		fmt.Fprintln(os.Stderr, "celld:", err)
		os.Exit(exitUsage)
	case flags.Lookup("version").Value.String() == "true":
		fmt.Printf("celld %s (%s, replies of redis-cell 0.5.0 and Redis %s)\n", version, runtime.Version(), resp.RedisVersion)
	case len(args) == 1 && args[0] == "ping":
		err = health.Ping(flags, false)
	case len(args) == 1 && args[0] == "ready":
		err = health.Ping(flags, true)
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "celld: unknown argument %q; see celld --help\n", args[0])
		os.Exit(exitUsage)
	default:
		err = serve(cfg, flags.Changed("maxmemory"))
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "celld:", err)
		os.Exit(exitFailure)
	}
}

// serve runs the daemon until a signal or SHUTDOWN ends it.
func serve(cfg *resp.Config, memoryGiven bool) error {
	log := newLog(cfg)
	memoryFrom := memory.Limit(cfg, memoryGiven, memory.OfContainer(os.DirFS("/")), log)
	disk := cfg.Persistence()
	clock := resp.NewClock()
	disk.Clock, disk.Log = clock.NowNS, log
	keys := store.New(store.Options{MaxKeys: cfg.MaxKeys(), MaxBytes: cfg.MaxMemory(), NoEviction: cfg.NoEviction(), Journal: disk.AppendOnly})
	server := resp.NewServer(resp.Options{
		Config: cfg, Store: keys, Log: log, Clock: clock.NowNS, ReadClocks: clock.Read, Version: version, Persistence: persistence.New(keys, disk),
	})
	// As Redis does. A terminal that is closed (SIGHUP) and a reader of the log that went away (SIGPIPE) would end the
	// process otherwise, and every limit with it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listeners, err := server.Listen()
	if err != nil {
		return err
	}
	addrs := resp.AddrTexts(listeners)
	if server.Loads() {
		log.Info("loading", "addr", addrs, "dir", disk.Dir, "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", memoryFrom)
	}
	ready := func() {
		log.Info("ready", "addr", addrs, "pid", os.Getpid(), "version", version,
			"max_keys", cfg.MaxKeys(), "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", memoryFrom, "maxclients", cfg.MaxClients(), "io_threads", cfg.IOThreads())
	}

	go func() {
		select {
		case <-server.Done():
		case <-ctx.Done():
		}
		stop() // a second signal ends the process at once
		log.Info("stopping")
	}()
	if err := server.Serve(ctx, listeners, ready); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

func newLog(cfg *resp.Config) *slog.Logger {
	level := new(slog.LevelVar)
	cfg.OnLogLevel(func(name string) {
		level.Set(map[string]slog.Level{"debug": slog.LevelDebug, "verbose": resp.LevelVerbose, "notice": slog.LevelInfo, "warning": slog.LevelWarn}[name])
	})
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat() == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

func defineFlags(cfg *resp.Config) *pflag.FlagSet {
	flags := pflag.NewFlagSet("celld", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.SortFlags = false
	for _, s := range cfg.Settings() {
		flags.Var(s.Value, s.Name, s.Help)
	}
	flags.Bool("version", false, "print the version")
	return flags
}

// configure reads the command line, then the environment for what the command line does not say.
func configure(cfg *resp.Config, flags *pflag.FlagSet) (args []string, err error) {
	if err := flags.Parse(os.Args[1:]); err != nil {
		return nil, err
	}
	if err := readEnvironment(flags); err != nil {
		return nil, err
	}
	return flags.Args(), cfg.Load(flags.Changed)
}

const envPrefix = "CELLD_"

// serviceLink matches what Kubernetes puts into the environment of every pod beside a Service that is named celld.
var serviceLink = regexp.MustCompile(`^CELLD(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)=`)

func readEnvironment(flags *pflag.FlagSet) error {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		flag := flags.Lookup(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-")))
		switch {
		case serviceLink.MatchString(entry) && (flag == nil || strings.Contains(value, "://")):
		case flag == nil || flag.Name == "version":
			return fmt.Errorf("unknown environment variable %s; see celld --help", name)
		case !flag.Changed && value != "": // empty is what compose files make of a variable that is not set
			if err := flags.Set(flag.Name, value); err != nil {
				return fmt.Errorf("environment variable %s: %w", name, errors.Unwrap(err))
			}
		}
	}
	return nil
}

func printHelp(w io.Writer, cfg *resp.Config) {
	fmt.Fprint(w, `celld answers redis-cell's CL.THROTTLE, and what else Redis clients ask, over Redis's protocol.

Usage:
  celld [flags]        serve
  celld ping [flags]   ask the server that these flags describe; exit 0 if it answers or loads (a health check)
  celld ready [flags]  the same, but exit 1 while it loads

Each flag can be given as an environment variable as well: --max-keys is CELLD_MAX_KEYS. The command line wins.
Sizes are 1000, 1k (1000), 1kb (1024), 1mb, 1gb. CONFIG SET changes most settings at run time.
`)
	group := ""
	var rows *pflag.FlagSet
	flush := func() {
		if rows != nil {
			fmt.Fprintf(w, "\n%s:\n%s", group, rows.FlagUsagesWrapped(120))
		}
	}
	for _, s := range cfg.Settings() {
		if s.Group != group {
			flush()
			group, rows = s.Group, pflag.NewFlagSet("", pflag.ContinueOnError)
			rows.SortFlags = false
		}
		rows.VarPF(s.Value, s.Name, "", s.Help).DefValue = s.Default
	}
	flush()
	fmt.Fprint(w, "\nOther:\n      --help      print this\n      --version   print the version\n")
}
