package systemd

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"celld/resp/listen"
)

// Sockets returns the sockets that systemd has passed, by their names (FileDescriptorName=). The error names the first that is of no use.
func Sockets() (listen.Inherited, error) { return sockets(activation.Files(true)) }

func sockets(files []*os.File) (in listen.Inherited, err error) {
	for _, f := range files {
		ln, wrong := listener(f)
		if wrong != nil {
			return in, fmt.Errorf("the socket %q of systemd: %w", f.Name(), wrong)
		}
		switch name := f.Name(); {
		case name == "tls":
			in.TLS = append(in.TLS, ln)
		case name == "http":
			in.HTTP = append(in.HTTP, ln)
		// the last three: without a name
		case name == "resp", name == "celld.socket", name == "unknown", strings.HasPrefix(name, "LISTEN_FD_"):
			in.Plain = append(in.Plain, ln)
		default:
			return in, fmt.Errorf("the socket %q of systemd: FileDescriptorName must be resp, tls or http", name)
		}
	}
	return in, nil
}

func listener(f *os.File) (net.Listener, error) {
	defer f.Close()
	if listens, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
		return nil, fmt.Errorf("it does not listen (ListenStream= and Accept=no)")
	}
	return net.FileListener(f)
}
