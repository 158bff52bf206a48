//go:build all

package transport

import (
	"errors"
	"testing"
	"time"
)

// A handshake that does not come to an end is given up.
func TestASlowHandshake(t *testing.T) {
	t.Parallel()
	c := secured(t, nil)
	p := dial(t, c.addr)
	p.send("\x16\x03\x01")
	begin := time.Now()
	p.wantClosed()
	if took := time.Since(begin); took < handshakeTime-time.Second {
		t.Errorf("it was given up after %v", took)
	}
	if err := c.failed.Load(); err == nil || !errors.Is(*err, errSlow) {
		t.Errorf("the failure is not that it was slow")
	}
}
