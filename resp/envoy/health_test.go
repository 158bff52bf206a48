package envoy

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
)

func TestHealth(t *testing.T) {
	sick := error(nil)
	h := &health{newStatistics(), func() error { return sick }}
	check := func(service, want string) {
		t.Helper()
		got, err := h.check([]byte("\x0a"+string(rune(len(service)))+service), []byte("before"))
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want {
			t.Errorf("%q is %q, want %q", service, got, want)
		}
	}
	check("", "before\x08\x01")
	check("ratelimit", "before\x08\x01")
	check("other", "NOT_FOUND: unknown service")
	if _, err := h.check([]byte("\x0a\x01x"), nil); grpc.ErrorOf(err).Code != grpc.NotFound {
		t.Errorf("another service: %v", err)
	}
	sick = errors.New("sick")
	check("", "before\x08\x02")
	check("ratelimit", "before\x08\x02")
	if got := h.state("other"); got != message.ServiceUnknown {
		t.Errorf("a watcher of another service sees %v", got)
	}
	if err := h.watch([]byte("\x0a\x05x"), nil); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a watcher of half a name: %v", err)
	}
}

// TestWatch: who watches sees each change, that at the end too, and does not hold up the end.
func TestWatch(t *testing.T) {
	w, sick := newWorld(t, Options{}), atomic.Bool{}
	sick.Store(true)
	server, client := serveGRPC(t, &w.service, &health{w.stats, func() error {
		if sick.Load() {
			return errors.New("sick")
		}
		return nil
	}}, false)
	watching, err := client.Begin(t, "/grpc.health.v1.Health/Watch", "\x0a\x09ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Body.Close()
	for _, want := range []string{"\x08\x02", "\x08\x01"} {
		answer := celldtest.GRPCMessage(want)
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(watching.Body, got); err != nil || string(got) != string(answer) {
			t.Errorf("a watcher sees %q, %v, want %q", got, err, answer)
		}
		sick.Store(false)
	}
	sick.Store(true)
	server.Shutdown(t.Context())
	rest, err := io.ReadAll(watching.Body)
	if err != nil || string(rest) != string(celldtest.GRPCMessage("\x08\x02")) || watching.Trailer.Get("Grpc-Status") != "14" {
		t.Errorf("at the end it sees %q, %v, %v", rest, err, watching.Trailer)
	}
}
