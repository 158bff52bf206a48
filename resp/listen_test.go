package resp

import (
	"log/slog"
	"net"
	"testing"

	"celld/store"
)

// TestPortZeroAtSeveralAddresses takes a tenth of the ports that the kernel gives out at the second of two addresses. Of
// 100 servers that all get a port, each has the same one at both.
func TestPortZeroAtSeveralAddresses(t *testing.T) {
	for range 2800 {
		ln, err := net.Listen("tcp", "127.0.0.89:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	for range 100 {
		cfg := NewConfig()
		for name, value := range map[string]string{"port": "0", "bind": "127.0.0.88,127.0.0.89"} {
			if err := cfg.row(name).Value.Set(value); err != nil {
				t.Fatal(err)
			}
		}
		srv := NewServer(Options{Config: cfg, Store: store.New(store.Options{}), Log: slog.New(slog.DiscardHandler)})
		listeners, err := srv.Listen()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := listeners[0].Addr().(*net.TCPAddr).Port, listeners[1].Addr().(*net.TCPAddr).Port; a != b {
			t.Errorf("ports %d and %d", a, b)
		}
		for _, ln := range listeners {
			ln.Close()
		}
	}
}
