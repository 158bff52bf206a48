package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// ListenTCP listens on one host: a name or an address; "*" is all of IPv4, "::*" all of IPv6. Port 0 is any free port. An IPv6
// listener takes no IPv4, so that 0.0.0.0 and :: can listen on one port. The error names the address and the cause.
func ListenTCP(host string, port int) (net.Listener, error) {
	network := "tcp4"
	switch host {
	case "*":
		host = "0.0.0.0"
	case "::*":
		host = "::"
	}
	if strings.Contains(host, ":") {
		network = "tcp6"
	} else if net.ParseIP(host) == nil {
		network = "tcp" // a name
	}
	// Go's keep-alive is off. It is set on each connection, as CONFIG SET may change it.
	lc := net.ListenConfig{KeepAlive: -1}
	ln, err := lc.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, listenError(err)
	}
	return ln, nil
}

// ListenUnix listens on a socket file. It replaces one that a killed process has left behind. If a living process answers on it,
// that is an error. perm 0 leaves the mode to the process's umask.
func ListenUnix(path string, perm os.FileMode) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen on %s: another process answers on it", path)
		}
		os.Remove(path)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, listenError(err)
	}
	if perm != 0 {
		if err := os.Chmod(path, perm); err != nil {
			ln.Close()
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	return ln, nil
}

// listenError cuts Go's "listen tcp 127.0.0.1:6379: bind: address already in use" to "listen on 127.0.0.1:6379: address already in use".
func listenError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		cause := op.Err
		var sys *os.SyscallError
		if errors.As(err, &sys) {
			cause = sys.Err
		}
		return fmt.Errorf("listen on %s: %w", op.Addr, cause)
	}
	return fmt.Errorf("listen: %w", err)
}
