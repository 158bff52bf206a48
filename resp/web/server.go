package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"celld/resp"
	"celld/resp/transport"
)

// The bounds of one connection.
const (
	headerTime  = 5 * time.Second // for the headers of a request
	requestTime = 10 * time.Second
	idleTime    = 2 * time.Minute // between requests
	headerBytes = 12 << 10        // net/http adds 4 KB
)

// Serve listens as h says, and answers until the server stops. It returns once it listens. Without h.Bind it does nothing. The error
// says why it cannot listen.
func Serve(server *resp.Server, h resp.HTTP, logger *slog.Logger) error {
	if h.Bind == "" {
		return nil
	}
	host, port, _ := net.SplitHostPort(h.Bind) // the setting has been checked
	n, _ := strconv.Atoi(port)
	ln, err := transport.ListenTCP(host, n)
	if err != nil {
		return err
	}
	front := &http.Server{
		Handler:                      newSite(server, h),
		ReadHeaderTimeout:            headerTime,
		ReadTimeout:                  requestTime,
		WriteTimeout:                 requestTime,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               headerBytes,
		ErrorLog:                     log.New(io.Discard, "", 0),                               // what peers do wrong; panics do not get there
		TLSNextProto:                 map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1 only
		DisableGeneralOptionsHandler: true,
	}
	server.OnStop(func(ctx context.Context) {
		if front.Shutdown(ctx) != nil {
			front.Close()
		}
	})
	logger.Info("HTTP is served", "http", ln.Addr().String())
	go front.Serve(limitConnections(ln, h.MaxConnections)) // until OnStop's function
	return nil
}

// site answers requests.
type site struct {
	server *resp.Server
	limits resp.HTTP
	token  *[sha256.Size]byte // nil: none is needed
}

func newSite(server *resp.Server, h resp.HTTP) *site {
	s := &site{server: server, limits: h}
	if h.Token != "" {
		sum := sha256.Sum256([]byte(h.Token))
		s.token = &sum
	}
	return s
}

// ServeHTTP looks at the path as it was sent, and redirects nobody.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if cause := recover(); cause != nil {
			s.server.Panicked(cause, "HTTP request")
			fail(w, http.StatusInternalServerError, "internal error")
		}
	}()
	w.Header().Set("Cache-Control", "no-store")
	switch path := r.URL.EscapedPath(); {
	case path == "/livez": // probes need no token, which orchestrators cannot keep secret
		s.read(w, r, alive)
	case path == "/readyz":
		s.read(w, r, s.ready)
	case !s.admitted(r):
		refuse(w)
	default:
		fail(w, http.StatusNotFound, "no such page")
	}
}

// read answers a request for what is only read.
func (s *site) read(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "only GET and HEAD")
		return
	}
	answer(w, r)
}
