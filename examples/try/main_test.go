package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// TestCelldEnds starts a celld that cannot listen for checks.
func TestCelldEnds(t *testing.T) {
	t.Chdir("..") // where go -C examples runs it
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	patient, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ctx, fail := context.WithCancelCause(patient)
	_, _, err = start(ctx, fail, []string{"--http-bind", taken.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "celld ended: exit status 1") {
		t.Errorf("start: %v", err)
	}
}
