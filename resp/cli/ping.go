package cli

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"celld/resp/certs"
	"celld/resp/config"
	"celld/resp/wire"
)

// pingPatience is how long ping waits to connect, and then for the answers.
const pingPatience = 3 * time.Second

// ping asks the server that the flags describe whether it is alive or, with ready, whether it serves. nil means yes. It prints what
// a living server said instead of PONG, and what a ready one lacks. Two commands need no client library.
//
// It asks all plain addresses at once, then those with TLS, and one answer is enough: some of a server's addresses may be missing.
//
// With ready, a server that says in INFO why it should get no more calls is not ready: it is stopping, its engine is away, or its
// disk refuses changes. /readyz says the same.
//
// A server that loads, is full, wants another password or lets this user run no PING is alive. To kill it for that would reset every
// limit. So these are errors only with ready.
func ping(cfg *config.Config, flags *pflag.FlagSet, ready bool) error {
	command := "ping"
	if ready {
		command = "ready"
	}
	var places []place
	if path := cfg.UnixSocket.Get(); path != "" {
		places = append(places, place{path: path})
	}
	listen := func(port int64, secure *tls.Config) {
		for _, word := range cfg.Bind.Get() {
			host, optional := strings.CutPrefix(word, "-")
			places = append(places, place{host: pingHost(host), port: strconv.FormatInt(port, 10), optional: optional, secure: secure})
		}
	}
	// If only the socket is named, another server may be at the default port.
	if port := cfg.Port.Get(); port != 0 && (len(places) == 0 || flags.Changed("port") || flags.Changed("bind")) {
		listen(port, nil)
	}
	if port := cfg.TLS.Port.Get(); port != 0 {
		listen(port, clientTLS(cfg))
	}
	if len(places) == 0 {
		return errors.New(command + ": --port 0 is whatever port was free; give the one that the log tells")
	}
	if err := probe(places, login(cfg), ready, 200*time.Millisecond); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// probe returns nil once a place has answered. Each place with TLS is asked later than the one before it, by apart, four times apart at
// most: a handshake that ends unfinished, as the answer is there, would be one more failure in the server's log.
func probe(places []place, who []string, ready bool, apart time.Duration) error {
	type answer struct {
		from int
		note string
		err  error
	}
	answers := make(chan answer, len(places))
	done := make(chan struct{})
	defer close(done)
	var later time.Duration
	for i, p := range places {
		if p.secure != nil && i > 0 {
			later = min(later+apart, 4*apart)
		}
		start := time.After(later)
		go func() {
			select {
			case <-done:
			case <-start:
				note, err := p.ping(who, ready)
				answers <- answer{i, note, err}
			}
		}()
	}
	failed := make([]error, len(places))
	tooLate := time.After(2 * pingPatience) // a name may take long to look up
	for range places {
		select {
		case a := <-answers:
			if a.err == nil {
				if a.note != "" {
					fmt.Println(a.note)
				}
				return nil
			}
			failed[a.from] = a.err
		case <-tooLate:
			return errors.New("no answer in time")
		}
	}
	return why(places, failed)
}

// login returns the command that authenticates, or nil.
func login(cfg *config.Config) []string {
	user, password := cfg.ProbeUser.Get(), cmp.Or(cfg.ProbePassword.Get(), cfg.RequirePass.Get())
	switch {
	case user != "":
		return []string{"AUTH", user, password}
	case password != "":
		return []string{"AUTH", password}
	}
	return nil
}

// clientTLS shows the server the certificate that the flags name, or the server's own, as Redis does where it is a client. It does not
// verify the server's: the place is an address of this machine, whose plain port nobody verifies either, and the certificate's names
// are those of elsewhere.
func clientTLS(cfg *config.Config) *tls.Config {
	client, c := &tls.Config{InsecureSkipVerify: true}, &cfg.TLS
	cert, key := cmp.Or(c.ClientCert.Get(), c.Cert.Get()), cmp.Or(c.ClientKey.Get(), c.Key.Get())
	if pair, err := certs.ReadPair(cert, key, c.KeyPass.Get()); err == nil { // a server that asks for none is asked without
		client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return client
}

// why returns the first error that is not about a missing optional address, or the first of all.
func why(places []place, failed []error) error {
	for i, err := range failed {
		if op := (*net.OpError)(nil); !places[i].optional || !errors.As(err, &op) || op.Op != "dial" {
			return err
		}
	}
	return failed[0]
}

// place is where a server may listen: a unix socket's path, or a host and a port.
type place struct {
	path, host, port string
	optional         bool
	secure           *tls.Config // nil: plain
}

// dial connects from the same address that it connects to, which only works if this machine has that address. An optional address
// may have moved to another machine, whose server must not answer.
func (p place) dial() (net.Conn, error) {
	dialer := net.Dialer{Timeout: pingPatience}
	if p.path != "" {
		return dialer.Dial("unix", p.path)
	}
	local, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(p.host, "0"))
	if err != nil {
		return nil, err
	}
	dialer.LocalAddr = local
	conn, err := dialer.Dial("tcp", net.JoinHostPort(local.AddrPort().Addr().String(), p.port))
	if err == nil && p.secure != nil {
		return tls.Client(conn, p.secure), nil
	}
	return conn, err
}

// living are the starts of errors that a living server sends.
var living = []string{"-LOADING ", "-BUSY ", "-NOAUTH ", "-WRONGPASS ", "-NOPERM ", "-ERR AUTH ", "-DENIED ",
	"-ERR max number of clients reached"}

// connect is dial, whose error does not name this end, as that does not help anybody.
func (p place) connect() (net.Conn, error) {
	conn, err := p.dial()
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Addr != nil {
		return nil, &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: op.Err}
	}
	return conn, err
}

// ping asks one place. note is what a living server said instead of PONG.
func (p place) ping(who []string, ready bool) (note string, err error) {
	conn, err := p.connect()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pingPatience))
	var request []byte
	if who != nil {
		request = wire.AppendCommand(nil, who...)
	}
	_, failed := conn.Write(wire.AppendCommand(request, "PING")) // a server that is full says so, and closes without reading
	replies := bufio.NewReader(conn)
	for authed := who == nil; ; authed = true {
		reply, err := wire.ReadReply(replies)
		// it wants another certificate
		if op := (*net.OpError)(nil); errors.As(cmp.Or(failed, err), &op) && op.Op == "remote error" && !ready {
			return op.Error(), nil
		}
		if err != nil {
			return "", cmp.Or(failed, err)
		}
		line := string(reply.Kind) + string(reply.Text)
		switch {
		case authed && line == "+PONG" && ready:
			return isReady(conn, replies)
		case authed && line == "+PONG":
			return "", nil
		case !authed && line == "+OK":
		case !ready && slices.ContainsFunc(living, func(start string) bool { return strings.HasPrefix(line, start) }):
			return line, nil
		default:
			return "", fmt.Errorf("%s answers %.200s", conn.RemoteAddr(), line)
		}
	}
}

// isReady asks a server that answers whether it wants calls. The error says why not, and the note what is wrong all the same. A server
// that does not tell is ready.
func isReady(conn net.Conn, replies *bufio.Reader) (note string, err error) {
	if _, err := conn.Write(wire.AppendCommand(nil, "INFO", "server", "store")); err != nil {
		return "", err
	}
	reply, err := wire.ReadReply(replies)
	if err != nil || reply.Kind != '$' {
		return "", err
	}
	if why := field(reply.Text, "not_ready_because"); why != "" {
		return "", fmt.Errorf("%s answers that it is not ready: %s", conn.RemoteAddr(), why)
	}
	if n := field(reply.Text, "store_slots_without_master"); n != "" && n != "0" {
		note = n + " slots of the engine's Cluster have no master"
	}
	return note, nil
}

// field returns a field of INFO; "" where there is none.
func field(info []byte, name string) string {
	_, after, _ := strings.Cut(string(info), "\n"+name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

// pingHost returns the address to reach a server that listens on host. For all addresses that is loopback.
func pingHost(host string) string {
	switch host {
	case "*":
		return "127.0.0.1"
	case "::*":
		return "::1"
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		if addr.Is4() {
			return "127.0.0.1"
		}
		return "::1"
	}
	return host
}

// flagsOfFirst returns the flags of process 1, if that is the named program or an init that runs it (docker run --init). So it is
// in a container, where a health check sees the server's environment but not its arguments. Elsewhere, and in a pod whose
// containers share their processes, it returns nil. proc is /proc.
func flagsOfFirst(proc fs.FS, program string) []string {
	line, err := fs.ReadFile(proc, "1/cmdline")
	if err != nil {
		return nil
	}
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	at := slices.IndexFunc(words, func(word string) bool { return filepath.Base(word) == filepath.Base(program) })
	if at < 0 {
		return nil
	}
	return words[at+1:]
}
