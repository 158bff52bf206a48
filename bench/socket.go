//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// socket is a TCP connection with blocking calls. The net package would hand every wait to Go's scheduler, whose own
// delays a probe of latencies must not see.
type socket struct{ fd int }

func dialSocket(addr string) (socket, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return socket{}, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return socket{}, fmt.Errorf("socket: %w", err)
	}
	s := socket{fd}
	patience := syscall.NsecToTimeval((30 * time.Second).Nanoseconds())
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &patience),
		// Closing resets the connection, so that ten thousand of them leave no ports waiting.
		syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}),
		connect(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}))
	if err != nil {
		s.Close()
		return socket{}, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return s, nil
}

// connect waits again where a signal, such as Go's scheduler sends to its threads, has ended the wait.
func connect(fd int, to syscall.Sockaddr) error {
	err := syscall.Connect(fd, to)
	for err == syscall.EINTR || err == syscall.EALREADY {
		if err = syscall.Connect(fd, to); err == syscall.EISCONN {
			return nil
		}
	}
	return err
}

func (s socket) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(s.fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("read from the server: %w", err)
		case n == 0:
			return 0, io.EOF
		default:
			// throttlecrab writes each reply by itself and leaves Nagle's algorithm on: without an acknowledgement at
			// once, a pipeline waits 40 ms for it.
			_ = syscall.SetsockoptInt(s.fd, syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
			return n, nil
		}
	}
}

func (s socket) Write(b []byte) (int, error) {
	for written := 0; written < len(b); {
		n, err := syscall.Write(s.fd, b[written:])
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return written, fmt.Errorf("write to the server: %w", err)
		}
		written += max(n, 0)
	}
	return len(b), nil
}

func (s socket) Close() error { return syscall.Close(s.fd) }
