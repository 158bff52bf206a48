package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"celld/resp"
	"celld/resp/door"
	"celld/resp/transport"
	"celld/resp/watch"
	"celld/resp/web/answers"
	"celld/resp/web/api"
	"celld/resp/web/guard"
)

// The bounds of one connection.
const (
	headerTime  = 5 * time.Second // for the headers of a request
	requestTime = 10 * time.Second
	idleTime    = 2 * time.Minute // between requests
	headerBytes = 12 << 10        // net/http adds 4 KB
)

// Serve listens as h says, and answers until the server stops. It returns once it listens. Without h.Bind and h.Inherited it does nothing.
// The error says why it cannot listen.
func Serve(server *resp.Server, h Options, logger *slog.Logger) error {
	listeners, err := listen(h)
	if err != nil || len(listeners) == 0 {
		return err
	}
	site := newSite(server, h)
	server.Watch(&watch.File{Setting: "http-token-file", Paths: []string{h.TokenFile}, Take: func() (_ []any, err error) {
		token, err := h.readToken()
		if err == nil {
			site.setToken(token)
		}
		return nil, err
	}})
	front := &http.Server{
		Handler:                      site,
		ReadHeaderTimeout:            headerTime,
		ReadTimeout:                  requestTime,
		WriteTimeout:                 requestTime,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               headerBytes,
		ErrorLog:                     log.New(mistakes{server}, "", 0),
		TLSNextProto:                 map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1 only
		DisableGeneralOptionsHandler: true,
	}
	server.OnStop(func(ctx context.Context) {
		if front.Shutdown(ctx) != nil {
			front.Close()
		}
	})
	limited := connections{most: int64(h.MaxConnections), open: new(atomic.Int64), tls: h.TLS, refused: func(client net.Addr) {
		server.Door.LogVerbose(door.RefusedConnection, "client", client.String(), "reason", "http-max-connections")
	}}
	for _, ln := range listeners {
		logger.Info("HTTP is served", "http", ln.Addr().String(), "tls", h.TLS != nil)
		own := limited
		own.Listener = ln
		go front.Serve(&own) // until OnStop's function
	}
	return nil
}

// listen returns the inherited sockets, or opens that of h.Bind. One that others than this machine may reach needs a token.
func listen(h Options) ([]net.Listener, error) {
	for _, ln := range h.Inherited {
		addr, ok := ln.Addr().(*net.TCPAddr)
		switch {
		case !ok:
			return nil, fmt.Errorf("the HTTP socket that systemd passes, %s, is not on TCP", ln.Addr())
		case !addr.IP.IsLoopback() && h.Token == "":
			return nil,
				fmt.Errorf("the HTTP socket that systemd passes, %s, is not a loopback address, so it needs --http-token-file", addr)
		}
	}
	if h.Bind == "" || len(h.Inherited) > 0 {
		return h.Inherited, nil
	}
	host, port, _ := net.SplitHostPort(h.Bind) // the setting has been checked
	n, _ := strconv.Atoi(port)
	ln, err := transport.ListenTCP(host, n)
	if err != nil {
		return nil, fmt.Errorf("--http-bind: %w", err)
	}
	return []net.Listener{ln}, nil
}

// site answers requests.
type site struct {
	server  *resp.Server
	limits  Options
	token   atomic.Pointer[[sha256.Size]byte] // nil: none is needed
	guard   guard.Guard
	metrics *metricsPage
	api     api.API

	readings  readings    // for the live page
	profiling atomic.Bool // a profile is being taken
}

func newSite(server *resp.Server, h Options) *site {
	s := &site{server: server, limits: h, readings: readings{take: server.Overview}, metrics: newMetricsPage(server),
		api: api.API{Door: server.Door, Trusted: h.Token != ""}}
	if h.Token != "" {
		s.setToken(h.Token)
		s.guard = guard.Guard{AnyName: true, Token: true}
	}
	return s
}

func (s *site) setToken(token string) {
	sum := sha256.Sum256([]byte(token))
	s.token.Store(&sum)
}

func (s *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w, page := &counted{ResponseWriter: rw}, "other"
	defer func() {
		if cause := recover(); cause != nil {
			s.server.Door.Panic(cause, "HTTP request")
			answers.Fail(w, http.StatusInternalServerError, "internal error")
		}
		s.metrics.count(page, max(w.status, http.StatusOK))
	}()
	guard.Chunked(w, r)
	w.Header().Set("Cache-Control", "no-store")
	var answer http.HandlerFunc
	page, answer = s.page(r)
	answer(w, r)
}

// page finds what answers a path, as it was sent: nobody is redirected. name is one of a few.
func (s *site) page(r *http.Request) (name string, answer http.HandlerFunc) {
	path := r.URL.EscapedPath()
	switch path { // probes need no token, which orchestrators cannot keep secret
	case "/livez":
		return "livez", answers.Read(alive)
	case "/readyz":
		return "readyz", answers.Read(s.ready)
	}
	switch {
	case !s.admitted(r):
		s.server.Door.LogVerbose(door.RefusedRequest, "client", r.RemoteAddr, "reason", "not the token of --http-token-file")
		return "other", askForToken
	case path == "/":
		return "page", answers.Read(s.byPerson(showPage))
	case path == "/stats.json":
		return "stats", answers.Read(s.byPerson(s.stats))
	case path == "/metrics":
		return "metrics", answers.Read(s.byPerson(s.metrics.ServeHTTP))
	}
	for _, what := range []string{toCheck, toLook, toGive} {
		if question, ok := strings.CutPrefix(path, "/"+what+"/"); ok {
			return what, func(w http.ResponseWriter, r *http.Request) { s.check(w, r, what, question) }
		}
	}
	if answer = s.api.Page(path); answer != nil {
		return "api", s.byCaller(answer)
	}
	if name, ok := strings.CutPrefix(path, pprofRoot); ok && s.limits.Pprof {
		return "pprof", answers.Read(s.byPerson(func(w http.ResponseWriter, r *http.Request) { s.profile(w, r, name) }))
	}
	return "other", notFound
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	answers.Fail(w, http.StatusNotFound, "no such page")
}
