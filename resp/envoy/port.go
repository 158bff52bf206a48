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
	"celld/resp/transport"
	"celld/resp/watch"
)

// port is where calls come in.
type port struct {
	*service
	server  *resp.Server
	log     *slog.Logger
	file    watch.File
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
		log:     log, stopped: make(chan struct{}),
	}
	d.watch()
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
	if o.Listen == nil {
		o.Listen = listen
	}
	for i, of := range doors {
		ln, err := o.Listen(of.setting, of.bind)
		if err != nil {
			return err
		}
		if listeners[i] = ln; ln != nil {
			about = append(about, of.about, ln.Addr().String())
		}
	}
	if o.XDS.Server != "" {
		d.follow(o.XDS)
	} else {
		server.Watch(&d.file)
		server.ReadNow(&d.file)
	}
	server.OnMetrics(d.stats.declare)
	server.OnStop(d.stop)
	log.Info("Envoy's rate limit service is served", about...)
	for i, ln := range listeners {
		if ln != nil {
			go doors[i].serve(netutil.LimitListener(ln, o.MaxConnections)) // until stop
		}
	}
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

// watch says what file there is to be watched.
func (d *port) watch() {
	d.file.Setting, d.file.Paths, d.file.Take = "envoy-config", []string{d.options.Config}, d.take
	d.stats.loads = d.file.Counts
}

// take puts the configuration to use, and returns what is to be logged of it.
func (d *port) take() (about []any, err error) {
	files, err := readFiles(d.options.Config)
	if err != nil {
		return nil, err
	}
	set, err := domains.Parse(files, domains.Options{Merge: d.options.Merge})
	if err != nil {
		return nil, err
	}
	for _, warning := range set.Warnings() {
		d.log.Warn("Envoy's limits may not be as they are meant", "file", warning)
	}
	d.set.Store(set)
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
	case set == nil && d.options.StartEmpty:
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
