// Celld is a rate limiter that speaks Redis's protocol and answers redis-cell's CL.THROTTLE. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"celld/persistence"
	"celld/resp"
	"celld/resp/cgroup"
	"celld/resp/cli"
	"celld/resp/clock"
	"celld/resp/engine"
	"celld/resp/envoy"
	"celld/resp/listen"
	"celld/resp/script"
	"celld/resp/scripts"
	"celld/resp/systemd"
	"celld/resp/web"
	"celld/store/memory"
)

const version = "0.1.0"

// wings are what celld does without: each line may go, with its import.
var wings = []resp.Wing{
	resp.Scripting(func() scripts.Engine { return script.NewEngine() }),
	engine.Wing(),
	web.Wing(),
	envoy.Wing(),
	systemd.Wing(),
	cgroup.Wing(),
}

// Exit codes: 1 for what the machine refused, 2 for what the user asked wrongly.
const (
	exitFailure = 1
	exitUsage   = 2
)

// lastLines is how long the process stays at its end for a reader of the log who has not read all of it.
const lastLines = time.Second

func main() {
	lines := cli.NewLines(os.Stderr)
	exit := func(code int) {
		lines.Flush(lastLines)
		os.Exit(code)
	}
	err := run(os.Args[1:], lines, exit)
	for _, one := range cli.Each(err) {
		fmt.Fprintln(lines, "celld:", one)
	}
	switch {
	case err == nil:
		exit(0)
	case errors.As(err, new(cli.UsageError)):
		exit(exitUsage)
	}
	exit(exitFailure)
}

func run(args []string, lines *cli.Lines, exit func(code int)) error {
	command, err := cli.Parse(args, version, wings)
	if command != nil && command.Check {
		warnings, mistakes, faults := command.Config.Check()
		if err = errors.Join(err, cli.Wrong(mistakes), faults); err == nil {
			for _, line := range slices.Concat(command.Idle(), warnings, command.Files.Warnings()) {
				fmt.Fprintln(os.Stderr, "celld: warning:", line)
			}
			for _, line := range command.Files.Lines() {
				fmt.Println(line)
			}
			fmt.Println("ok: a start can use these settings and files")
		}
		return err
	}
	if err != nil || command == nil {
		return err
	}
	return serve(command, lines, exit)
}

// serve runs the daemon until a signal or SHUTDOWN ends it.
func serve(command *cli.Command, lines *cli.Lines, exit func(code int)) error {
	cfg := command.Config
	log := cli.NewLog(lines, cfg)
	for _, line := range command.Idle() {
		log.Warn(line)
	}
	disk, clock := cfg.Persistence(), clock.New()
	disk.Clock, disk.Log, disk.Exit = clock.NowNS, log, exit
	keys := memory.New(memory.Options{MaxKeys: cfg.MaxKeys.Get(), MaxBytes: cfg.MaxMemory.Get(), NoEviction: cfg.NoEviction(),
		Journal: disk.AppendOnly, Now: clock.NowNS})
	o := resp.Options{
		Config: cfg, Files: command.Files, Store: keys, Log: log, Clock: clock.NowNS, ReadClocks: clock.Read, Version: version,
		Persistence: persistence.New(keys, disk), Exit: exit, Dropped: lines.Dropped,
	}
	for _, w := range wings {
		if w.Open == nil {
			continue
		}
		if err := w.Open(&o); err != nil {
			return err
		}
	}
	store := "memory"
	if o.Engine != nil {
		defer o.Engine.Close()
		store = o.Engine.Facts().Name
	}
	server := resp.NewServer(o)
	// A reader of the log that went away would end the process otherwise, and every limit with it. So would a terminal that is closed:
	// its SIGHUP only reloads files.
	signal.Ignore(syscall.SIGPIPE)
	hangups := make(chan os.Signal, 1) // one that comes while files are loaded is kept
	signal.Notify(hangups, syscall.SIGHUP)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listeners, err := server.Listen()
	if err != nil {
		return err
	}
	for _, w := range wings {
		if w.Serve == nil {
			continue
		}
		if err := w.Serve(server, &o); err != nil {
			return err
		}
	}
	addrs := listen.AddrTexts(listeners)
	tell := func(state resp.State) {
		for _, w := range wings {
			if w.Tell != nil {
				w.Tell(server, state, addrs)
			}
		}
	}
	if server.Loads() {
		tell(resp.Loading)
		log.Info("loading", "addr", addrs, "dir", disk.Dir, "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", cfg.MaxMemoryFrom)
	}
	ready := func() {
		about := []any{"addr", addrs, "pid", os.Getpid(), "version", version, "store", store,
			"max_keys", cfg.MaxKeys.Get(), "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", cfg.MaxMemoryFrom,
			"maxclients", cfg.MaxClients.Get(), "io_threads", cfg.IOThreads.Get()}
		if why := server.NotReady(); why != "" { // celld is, and celld ready says that its engine is not
			about = append(about, "not_ready_because", why)
		}
		log.Info("ready", about...)
		tell(resp.Ready)
		go func() {
			for range hangups {
				tell(resp.Reloading)
				server.Reload()
				tell(resp.Reloaded)
			}
		}()
	}

	go func() {
		server.AwaitStop(signals)
		signal.Stop(signals) // the next one ends the process at once
		log.Info("stopping")
		tell(resp.Stopping)
		stop()
	}()
	if err := server.Serve(ctx, listeners, ready); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
