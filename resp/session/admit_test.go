package session

import (
	"net"
	"strings"
	"testing"

	"celld/resp/session/sessiontest"
)

// The transport is told whom it may serve, and which refusals are for want of room.
func TestAdmit(t *testing.T) {
	w := newWorld(t, "maxclients", "1")
	admit := w.Carried().Admit
	s, refusal, full := admit(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, sessiontest.LocalAddr)
	if s != nil || !strings.HasPrefix(refusal, "-DENIED") || full {
		t.Errorf("a stranger: %v, %q, full %v", s, refusal, full)
	}
	if s, refusal, full := admit(sessiontest.RemoteAddr, sessiontest.LocalAddr); s == nil || refusal != "" || full {
		t.Errorf("the first: %v, %q, full %v", s, refusal, full)
	}
	if s, refusal, full := admit(sessiontest.RemoteAddr, sessiontest.LocalAddr); s != nil || refusal != fullLine || !full {
		t.Errorf("one more: %v, %q, full %v", s, refusal, full)
	}
}
