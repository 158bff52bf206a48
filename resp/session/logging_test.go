package session

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"celld/resp/loglimit"
	"celld/resp/session/sessiontest"
)

// Of lines that tell of clients one by one, the first ten in each second are logged.
func TestTold(t *testing.T) {
	w := newWorld(t)
	w.Service.Log.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: loglimit.Verbose}))
	for second := range 3 {
		for i := range 100 {
			w.LogVerbose("refused", "client", i)
		}
		w.sleepMS(1000)
		w.Service.Log.Flush()
		// Its last line is the first of the next second.
		if n, want := strings.Count(w.log.String(), "\n"), 11+10*second; n != want {
			t.Fatalf("%d lines after %d s, want %d:\n%s", n, second+1, want, w.log)
		}
		if want := fmt.Sprintf("client=99 left_out=%d\n", 89+min(second, 1)); !strings.HasSuffix(w.log.String(), want) {
			t.Errorf("it does not end in %s:\n%s", want, w.log)
		}
	}
}

// No peer fills the log: not by limits that it passes again and again, nor by settings that it changes.
func TestPeersDoNotFloodTheLog(t *testing.T) {
	for name, flood := range map[string]func(w *world, p *peer){
		"unfinished commands": func(_ *world, p *peer) {
			p.Serve([]byte("*20\r\n" + strings.Repeat("$60000\r\n"+strings.Repeat("x", 60000)+"\r\n", 3)))
		},
		"transactions": func(_ *world, p *peer) {
			p.Serve([]byte("MULTI\r\n" + strings.Repeat(sessiontest.Frame("ECHO", strings.Repeat("x", 60000)), 3)))
		},
		"replies in one": func(_ *world, p *peer) {
			p.Serve([]byte("MULTI\r\n" + strings.Repeat(sessiontest.Frame("COMMAND", "DOCS"), 9) + sessiontest.Frame("EXEC")))
		},
		"replies not read": func(_ *world, p *peer) {
			p.tr.Pending = 1 << 20
			p.Serve([]byte(sessiontest.Frame("PING")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "client-query-buffer-limit", "128kb", "client-output-buffer-limit", "128kb")
			for range 50 {
				flood(w, w.connect())
			}
			if n := strings.Count(w.log.String(), "\n"); n > 2 {
				t.Errorf("%d lines in one second:\n%s", n, w.log)
			}
		})
	}
}
