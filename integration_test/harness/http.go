package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"celld/internal/celldtest"
)

// HTTP is the address that a celld with --http-bind serves HTTP on.
func (s *Server) HTTP() string {
	s.T.Helper()
	addr := ""
	celldtest.Eventually(s.T, "HTTP address", func() bool {
		lines := bufio.NewScanner(strings.NewReader(s.Log.String()))
		for lines.Scan() {
			var event struct{ HTTP string }
			if json.Unmarshal(lines.Bytes(), &event) == nil && event.HTTP != "" {
				addr = event.HTTP
			}
		}
		return addr != ""
	})
	return addr
}

// browser follows no redirect, as a proxy does not.
var browser = &http.Client{
	Timeout:       ReplyTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Get asks celld by HTTP. Headers are names and values in turn. The path is sent as it is.
func (s *Server) Get(path string, headers ...string) (status int, header http.Header, body string) {
	s.T.Helper()
	return Get(s, "http://"+s.HTTP()+path, headers...)
}

// Get is the same for any URL.
func Get(s *Server, url string, headers ...string) (status int, header http.Header, body string) {
	s.T.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := browser.Do(req)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		s.T.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}
