package world

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The HTTP port is asked by probes and proxies.

func runHTTP(w *world) {
	var all sync.WaitGroup
	for n := range 2 {
		c := w.caller(fmt.Sprintf("browser %d", n), 130+n)
		all.Go(func() {
			for range c.rounds(w.plan.calls/2, w.plan.think+time.Millisecond) {
				m := w.all[c.rnd.IntN(len(w.all))]
				switch path := oneOf(c.rnd, "/livez", "/readyz", "/metrics", "/check/none/by/word:x"); path {
				case "/livez":
					w.fetch(&c, m, path, http.StatusOK)
				case "/readyz":
					w.fetch(&c, m, path, http.StatusOK, http.StatusServiceUnavailable)
				case "/metrics":
					w.fetch(&c, m, path, http.StatusOK)
				default: // a policy that is not there
					w.fetch(&c, m, path, http.StatusNotFound, http.StatusServiceUnavailable, http.StatusBadRequest)
				}
			}
		})
	}
	all.Wait()
}

// browser connects anew for each request.
func browser(dial func() (net.Conn, error)) http.Client {
	return http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}}
}

// fetch asks the HTTP port, and checks the status. It returns the status, 0 where there was no answer, and the header.
func (w *world) fetch(c *caller, m *machine, path string, statuses ...int) (status int, header http.Header) {
	client := browser(func() (net.Conn, error) { return w.network.Dial(c.addr, m.http()) })
	w.event(c.name, "fetches %s from %s", path, m.addr)
	resp, err := client.Get("http://" + w.token(c) + m.http() + path)
	if err != nil {
		w.event(c.name, "gets nothing: %v", err)
		return 0, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	w.event(c.name, "gets %d, %d bytes, %v", resp.StatusCode, len(body), err)
	if !slices.Contains(statuses, resp.StatusCode) && !(resp.StatusCode == http.StatusUnauthorized && w.plan.has("secrets")) {
		w.wrong("%s: %s was answered %s: %.200s", c.name, path, resp.Status, body)
	}
	return resp.StatusCode, resp.Header
}
