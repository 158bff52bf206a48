package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"celld/resp"
)

// livePage is the whole live page: it loads nothing except /stats.json.
//
//go:embed page.html
var livePage string

// pageRules let the page run its own script and style only, and ask this port only. Texts cannot become elements in it.
var pageRules = "default-src 'none'; script-src " + hashOf("script") + "; style-src " + hashOf("style") +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// hashOf names the content of an element of the page, as a Content-Security-Policy does.
func hashOf(element string) string {
	_, rest, _ := strings.Cut(livePage, "<"+element+">")
	content, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func showPage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pageRules)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	_, _ = w.Write([]byte(livePage))
}

// readingTime is how long one reading of the server serves all who ask for it, so that many viewers cost as much as one.
const readingTime = 500 * time.Millisecond

// readings are the answers of /stats.json.
type readings struct {
	take func() *resp.Overview

	mu    sync.Mutex
	last  []byte
	taken time.Time
}

func (r *readings) read() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || time.Since(r.taken) >= readingTime {
		r.taken = time.Now()
		r.last, _ = json.Marshal(r.take()) // of texts and numbers
	}
	return r.last
}

// stats shows keys, as CL.TOP does.
func (s *site) stats(w http.ResponseWriter, r *http.Request) {
	if err := s.server.Door.Refused(s.api.Caller(r), "cl.top"); err != nil {
		failCheck(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin") // another site's page gets nothing of it
	_, _ = w.Write(s.readings.read())
}
