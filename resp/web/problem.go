package web

import (
	"encoding/json"
	"net/http"
)

// problem is the body of an answer other than 200, by RFC 9457.
type problem struct {
	Type     string   `json:"type,omitempty"` // omitted: the status says all
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// fail answers with an error in one line.
func fail(w http.ResponseWriter, status int, detail string) {
	writeProblem(w, problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

func writeProblem(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	body := json.NewEncoder(w)
	body.SetEscapeHTML(false) // no browser takes it for HTML
	_ = body.Encode(p)        // and a line's end
}
