package envoy

import (
	"errors"
	"strings"
	"testing"

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
