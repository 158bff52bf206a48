package tls

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestOpenSSLAsksForMore runs OpenSSL's own client. A change of keys is served. A renegotiation ends the connection.
func TestOpenSSLAsksForMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients", "no")
	for version, says := range map[string]string{"-tls1_3": "+PONG", "-tls1_2": ""} {
		cmd := harness.Command(t, celldtest.Need(t, "openssl"), "s_client", version, "-connect", addr, "-CAfile", w.ca.File)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = cmd.Stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		until := func(text string) {
			for lines.Scan() {
				if strings.Contains(lines.Text(), text) {
					return
				}
			}
			t.Fatalf("%s: no %q", version, text)
		}
		_, _ = io.WriteString(in, "PING\n")
		until("+PONG")
		// OpenSSL reads a letter at the beginning of what it gets as an order to itself.
		if version == "-tls1_3" {
			_, _ = io.WriteString(in, "K\n")
			until("KEYUPDATE")
		} else {
			_, _ = io.WriteString(in, "R\n")
			until("RENEGOTIATING")
		}
		_, _ = io.WriteString(in, "PING\n")
		if says != "" {
			until(says)
		}
		in.Close()
		for lines.Scan() {
			if strings.Contains(lines.Text(), "+PONG") {
				t.Errorf("%s: it is served after that", version)
			}
		}
		_ = cmd.Wait()
	}
	srv.Alive()
}
