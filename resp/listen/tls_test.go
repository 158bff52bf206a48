package listen

import (
	"bytes"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/resp/certs"
	"celld/resp/config"
	"celld/resp/loglimit"
)

// A certificate is warned of once before it ends and once when it has, also while the server runs; and a good one in its place can be
// warned of anew.
func TestWarnOfCertificate(t *testing.T) {
	authority := celldtest.NewAuthority(t)
	synctest.Test(t, func(t *testing.T) { // whose clock begins at the year 2000
		var log bytes.Buffer
		s := New(config.New(), loglimit.New(slog.New(slog.NewTextHandler(&log, nil)), nil), Inherited{})
		open := func(ends time.Time) {
			cert, key := authority.Sign("server", &x509.Certificate{NotAfter: ends}) // it begins 48 hours before
			k, err := certs.Open(certs.Files{Cert: cert, Key: key})
			if err = errors.Join(err, s.cfg.TLS.Cert.Set(cert)); err != nil {
				t.Fatal(err)
			}
			s.cfg.TLS.Keeper = k
		}
		warned := func(words ...string) {
			t.Helper()
			s.WarnOfCertificate()
			s.WarnOfCertificate()
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(words) == 0 && len(lines) == 0 {
				return
			}
			if len(lines) != 1 || len(words) == 0 || !strings.Contains(lines[0], "level=WARN") {
				t.Fatalf("%q, want %q", lines, words)
			}
			for _, word := range append(words, "server.crt") {
				if !strings.Contains(lines[0], word) {
					t.Errorf("%q has no %q", lines[0], word)
				}
			}
			log.Reset()
		}
		s.WarnOfCertificate() // there is none
		start := time.Now()
		open(start.Add(47 * time.Hour))
		warned()
		celldtest.Pass(32 * time.Hour) // 15 are left
		warned("the certificate ends soon", "not_after=2000-01-02T23:00:00Z")
		celldtest.Pass(16 * time.Hour)
		warned("clients refuse the certificate", "it was valid until 2000-01-02T23:00:00Z")
		open(time.Now().Add(72 * time.Hour))
		warned("clients refuse the certificate", "it is valid from 2000-01-04T00:00:00Z on")
		celldtest.Pass(24 * time.Hour)
		warned()
		open(time.Now().Add(time.Hour))
		warned("the certificate ends soon")
	})
}
