package web

import (
	"io"
	"net/http"
)

// alive: a process that answers is alive, also while it loads its files or waits for an engine. A restart would mend nothing.
func alive(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }

// ready says whether calls are decided, and if not, why not.
func (s *site) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.server.Ready(); err != nil {
		plain(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	plain(w, http.StatusOK, "ok")
}

// plain answers with one line of text.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n")
}
