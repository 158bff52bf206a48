package resp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Listen opens the addresses that the configuration names. At an error it leaves none open. The addresses are
// known before the first connection is served, port 0 and all.
func (srv *Server) Listen() ([]net.Listener, error) {
	srv.fitDescriptors()
	var open []net.Listener
	path := srv.cfg.unixSocket.Get()
	port := int(srv.cfg.port.Get())
	if port != 0 || path == "" {
		var err error
		open, err = srv.listenHosts(port)
		for tries := 1; port == 0 && errors.Is(err, syscall.EADDRINUSE) && tries < 10; tries++ {
			open, err = srv.listenHosts(port)
		}
		if err != nil {
			return nil, err
		}
	}
	if path != "" {
		ln, err := listenUnix(path, srv.cfg.unixSocketPerm.Get())
		if err != nil {
			closeAll(open)
			return nil, err
		}
		open = append(open, ln)
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, ln := range open {
		srv.addrs = append(srv.addrs, ln.Addr())
	}
	return open, nil
}

// listenHosts listens on the addresses of --bind. For port 0 the kernel picks a port at the first of them, which another
// process may have at the next one: then all begins again.
func (srv *Server) listenHosts(port int) (open []net.Listener, err error) {
	for _, host := range srv.cfg.bind.Get() {
		host, optional := strings.CutPrefix(host, "-")
		ln, err := listenTCP(host, port)
		switch {
		case err == nil:
			open = append(open, ln)
			port = ln.Addr().(*net.TCPAddr).Port
		case optional && !errors.Is(err, syscall.EADDRINUSE):
			srv.log.Debug("optional address is not there", "host", host, "error", err)
		default:
			closeAll(open)
			return nil, err
		}
	}
	if len(open) == 0 {
		return nil, errors.New("listen: none of the addresses of --bind is there")
	}
	return open, nil
}

func closeAll(listeners []net.Listener) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// listenTCP listens on one host; "*" is all of IPv4, "::*" all of IPv6. Each family gets a socket of its own, so that
// 0.0.0.0 and :: can both be named.
func listenTCP(host string, port int) (net.Listener, error) {
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
	// Go's own keep-alive is turned off: it is set at each connection, as CONFIG SET may change it.
	lc := net.ListenConfig{KeepAlive: -1}
	ln, err := lc.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, listenError(err)
	}
	return ln, nil
}

// listenUnix listens on a socket file. One that a killed process has left behind is replaced; one that a living process
// answers on is not.
func listenUnix(path, permText string) (net.Listener, error) {
	perm, err := parsePerm(permText)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: unixsocketperm: %w", path, err)
	}
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

// listenError cuts Go's "listen tcp 127.0.0.1:6379: bind: address already in use" to what a person needs.
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

// AddrTexts are the addresses for people and scripts: "127.0.0.1:6379", "unix:/run/celld.sock".
func AddrTexts(listeners []net.Listener) []string {
	var texts []string
	for _, ln := range listeners {
		text := ln.Addr().String()
		if ln.Addr().Network() == "unix" {
			text = "unix:" + text
		}
		texts = append(texts, text)
	}
	return texts
}
