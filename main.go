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
	"celld/resp/envoy"
	"celld/resp/listen"
	"celld/resp/systemd"
	"celld/resp/web"
	"celld/store/memory"
	"celld/store/remote"
)

const version = "0.1.0"

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
	command, err := cli.Parse(args, version)
	if command != nil && command.Check {
		warnings, wrong := envoy.Check(command.Config.EnvoyOptions())
		if err = errors.Join(err, command.Config.Check(), cli.Wrong(wrong)); err == nil {
			for _, line := range slices.Concat(command.Config.Warnings(), command.Idle(), warnings) {
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
	if err := cli.Wrong(envoy.CheckFiles(command.Config.EnvoyOptions())); err != nil {
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
	memoryFrom := cgroup.Limit(cfg, command.Given("maxmemory"), cgroup.OfContainer(os.DirFS("/")), log)
	disk := cfg.Persistence()
	inherited, err := systemd.Sockets()
	if err != nil {
		return err
	}
	systemd := systemd.Notifier{Log: log}
	clock := clock.New()
	disk.Clock, disk.Log, disk.Exit = clock.NowNS, log, exit
	keys := memory.New(memory.Options{MaxKeys: cfg.MaxKeys.Get(), MaxBytes: cfg.MaxMemory.Get(), NoEviction: cfg.NoEviction(),
		Journal: disk.AppendOnly, Now: clock.NowNS})
	var engine *remote.Store // nil: limits are kept in memory
	if o := cfg.EngineOptions(); o != nil {
		o.Policies, o.Log = keys.Set, log
		if engine, err = remote.Open(*o); err != nil {
			return err
		}
		defer engine.Close()
	}
	server := resp.NewServer(resp.Options{
		Inherited: inherited, Config: cfg, Files: command.Files, Store: keys, Engine: engine, Log: log,
		Clock: clock.NowNS, ReadClocks: clock.Read, Version: version,
		Persistence: persistence.New(keys, disk), Exit: exit, Dropped: lines.Dropped,
	})
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
	http := cfg.HTTPOptions()
	http.Inherited = inherited.HTTP
	if err := web.Serve(server, http, log); err != nil {
		return err
	}
	if err := envoy.Serve(server, cfg.EnvoyOptions(), log); err != nil {
		return err
	}
	addrs := listen.AddrTexts(listeners)
	if server.Loads() {
		systemd.Loading()
		log.Info("loading", "addr", addrs, "dir", disk.Dir, "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", memoryFrom)
	}
	ready := func() {
		about := []any{"addr", addrs, "pid", os.Getpid(), "version", version, "store", cfg.StoreText(),
			"max_keys", cfg.MaxKeys.Get(), "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", memoryFrom,
			"maxclients", cfg.MaxClients.Get(), "io_threads", cfg.IOThreads.Get()}
		if why := server.NotReady(); why != "" { // celld is, and celld ready says that its engine is not
			about = append(about, "not_ready_because", why)
		}
		log.Info("ready", about...)
		systemd.Ready(addrs...)
		go systemd.Watch(server.Decides)
		go func() {
			for range hangups {
				systemd.Reloading()
				server.Reload()
				systemd.Ready(addrs...)
			}
		}()
	}

	go func() {
		server.AwaitStop(signals)
		signal.Stop(signals) // the next one ends the process at once
		log.Info("stopping")
		systemd.Stopping()
		stop()
	}()
	if err := server.Serve(ctx, listeners, ready); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
