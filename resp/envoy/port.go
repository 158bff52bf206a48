package envoy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"celld/resp"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/grpc"
	"celld/resp/reload"
	"celld/resp/transport"
)

// lookTime is how often files, and the health for those who watch it, are looked at.
const lookTime = 500 * time.Millisecond

// port is where calls come in.
type port struct {
	*service
	server  *resp.Server
	log     *slog.Logger
	watcher watcher
	grpc    *grpc.Server
	http    []*http.Server
	stopped chan struct{}
}

// Serve reads the configuration, listens as o says, and answers until the server stops. It returns once it listens; without an address it
// does nothing. A configuration with a mistake is logged, and calls get errors until it is mended. The error says what cannot be read, or
// why it cannot listen.
func Serve(server *resp.Server, o Options, log *slog.Logger) error {
	if o.Bind == "" && o.HTTPBind == "" {
		return nil
	}
	d := &port{
		service: &service{limits: server.Door, options: o, stats: newStatistics(), now: time.Now, panicked: server.Door.Panic},
		server:  server,
		log:     log, watcher: watcher{path: o.Config, merge: o.Merge}, stopped: make(chan struct{}),
	}
	d.grpc = newGRPC(d.service, &health{d.stats, d.unwell}, server.Door.Waits())
	doors := []struct {
		setting, bind, about string
		serve                func(net.Listener) error
	}{
		{"--envoy-bind", o.Bind, "envoy", d.grpc.Serve},
		{"--envoy-http-bind", o.HTTPBind, "envoy_http", d.serveHTTP(newHTTP(d))},
		{"--envoy-metrics-bind", o.MetricsBind, "envoy_metrics", d.serveHTTP(newMetrics(d))},
	}
	listeners, about := make([]net.Listener, len(doors)), []any{"tls", o.TLS != nil}
	for i, of := range doors {
		ln, err := listen(of.setting, of.bind)
		if err != nil {
			return err
		}
		if listeners[i] = ln; ln != nil {
			about = append(about, of.about, ln.Addr().String())
		}
	}
	d.reload()
	server.OnMetrics(d.stats.declare)
	server.OnReload(reload.Other{What: "envoy", File: o.Config, Reload: d.reloadNow})
	server.OnStop(d.stop)
	log.Info("Envoy's rate limit service is served", about...)
	for i, ln := range listeners {
		if ln != nil {
			go doors[i].serve(netutil.LimitListener(ln, o.MaxConnections)) // until stop
		}
	}
	go look(d.stopped, d.reload)
	return nil
}

// serveHTTP is what serves a server's listener, and notes that it is to be stopped.
func (d *port) serveHTTP(server *http.Server) func(net.Listener) error {
	d.http = append(d.http, server)
	return server.Serve
}

// Check reads the configuration. The error joins one for each mistake in files that CheckFiles can read.
func Check(o Options) (warnings []string, err error) {
	files, err := read(o.Config)
	if err != nil {
		return nil, nil
	}
	set, err := domains.Parse(files, domains.Options{Merge: o.Merge})
	if err != nil {
		return nil, err
	}
	return set.Warnings(), nil
}

// CheckFiles says which file of the configuration cannot be read, whatever is in it.
func CheckFiles(path string) error {
	_, err := read(path)
	return err
}

// read reads the files of the configuration, where one is set.
func read(path string) (files []domains.File, err error) {
	if path == "" {
		return nil, nil
	}
	if files, err = readFiles(path); err != nil {
		err = fmt.Errorf("--envoy-config: %w", err)
	}
	return files, err
}

// listen opens a socket: host:port, or unix:// and the path of a socket file. It returns nil for "".
func listen(setting, bind string) (ln net.Listener, err error) {
	path, isUnix := strings.CutPrefix(bind, "unix://")
	switch {
	case bind == "":
		return nil, nil
	case isUnix:
		ln, err = transport.ListenUnix(path, 0)
	case strings.HasPrefix(bind, "[::]:"): // of both families, as everywhere in Envoy's world
		ln, err = net.Listen("tcp", bind)
	default:
		host, port, _ := net.SplitHostPort(bind) // the setting has been checked
		n, _ := strconv.Atoi(port)
		ln, err = transport.ListenTCP(host, n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return ln, nil
}

// look calls reload until the port is closed. Where files are many, it does so less often: it takes 5 % of a core at most.
func look(stopped <-chan struct{}, reload func()) {
	for pause := lookTime; ; {
		select {
		case <-stopped:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		reload()
		pause = max(lookTime, 20*time.Since(began))
	}
}

// reload puts a new configuration to use, and logs that, or its mistakes.
func (d *port) reload() {
	defer d.server.Door.Survive("reload of Envoy's limits")
	first := d.set.Load() == nil
	about, err := d.take(first)
	if err != nil { // one line for each mistake
		for line := range strings.Lines(err.Error()) {
			d.log.Error("Envoy's limits are not loaded", "error", strings.TrimSpace(line))
		}
	}
	if about != nil {
		d.log.Info("Envoy's limits are loaded", about...)
	}
}

// reloadNow is reload for somebody who says that the files are whole, and logs by himself.
func (d *port) reloadNow() (about []any, err error) { return d.take(true) }

// take puts a configuration to use if it is new, and returns what is to be logged of it.
func (d *port) take(hurry bool) (about []any, err error) {
	set, changed, err := d.watcher.look(hurry)
	switch {
	case !changed:
		return nil, nil
	case err != nil:
		d.stats.failed.Add(1)
		return nil, err
	}
	for _, warning := range set.Warnings() {
		d.log.Warn("Envoy's limits may not be as they are meant", "file", warning)
	}
	d.set.Store(set)
	d.stats.loaded.Add(1)
	return []any{"domains", set.Len(), "limits", set.Limits()}, nil
}

// unwell says why no calls should come here, or nil.
func (d *port) unwell() error {
	select {
	case <-d.stopped:
		return errors.New("the server stops")
	default:
	}
	set := d.set.Load()
	switch {
	case set == nil:
		return errors.New("no configuration is loaded")
	case set.Len() == 0 && d.options.HealthNeedsDomain:
		return errors.New("the configuration has no domain")
	case d.server.Door.Loading():
		return errors.New("the server is loading its files")
	}
	if why := d.server.NotReady(); why != "" {
		return errors.New(why)
	}
	return nil
}

// stop ends the service: no new calls, and those that run end before ctx does.
func (d *port) stop(ctx context.Context) {
	close(d.stopped)
	ended := make(chan struct{})
	go func() {
		d.grpc.Shutdown(ctx)
		close(ended)
	}()
	for _, server := range d.http {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	<-ended
}
