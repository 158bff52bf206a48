// Package health asks a server whether it is there: the health check of an image without a shell.
package health

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"celld/resp/wire"

	"github.com/spf13/pflag"
)

// pingPatience is how long Ping waits for an answer.
const pingPatience = 3 * time.Second

// Ping asks the server that the flags describe whether it is there, or ready to serve. One round of two lines needs no client
// library.
//
// It asks all addresses at once, and one that answers will do: a server has several, of which some may be missing.
//
// A server that loads, or is full, or has got another password, is there, and whoever kills it for that has every limit begin
// anew. So only ready refuses these.
func Ping(flags *pflag.FlagSet, ready bool) error {
	value := func(name string) string { return flags.Lookup(name).Value.String() }
	password, port := value("requirepass"), value("port")
	var places []place
	if path := value("unixsocket"); path != "" {
		places = append(places, place{path: path})
	}
	// Who names only the socket may have another server at the port that is the default.
	if port != "0" && (len(places) == 0 || flags.Changed("port") || flags.Changed("bind")) {
		for _, word := range strings.Fields(value("bind")) {
			host, optional := strings.CutPrefix(word, "-")
			places = append(places, place{host: pingHost(host), port: port, optional: optional})
		}
	}
	if len(places) == 0 {
		return errors.New("ping: --port 0 is whatever port was free; give the one that the log tells")
	}
	type answer struct {
		from int
		note string
		err  error
	}
	answers := make(chan answer, len(places))
	for i, p := range places {
		go func() {
			note, err := p.ping(password, ready)
			answers <- answer{i, note, err}
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
			return errors.New("ping: no answer in time")
		}
	}
	return fmt.Errorf("ping: %w", why(places, failed))
}

// why is the first error that is no missing address, or the first.
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
}

// dial connects from the address that it connects to, which only works where this machine has it: another one, to which an
// optional address has moved, must not answer.
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
	return dialer.Dial("tcp", net.JoinHostPort(local.AddrPort().Addr().String(), p.port))
}

// living begins the errors by which a server refuses a client, or all of them for now.
var living = []string{"-LOADING ", "-NOAUTH ", "-WRONGPASS ", "-ERR AUTH ", "-DENIED ", "-ERR max number of clients reached"}

// ping returns what a living server said beside PONG.
func (p place) ping(password string, ready bool) (note string, err error) {
	conn, err := p.dial()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pingPatience))
	var request []byte
	if password != "" {
		request = wire.AppendCommand(nil, "AUTH", password)
	}
	_, failed := conn.Write(wire.AppendCommand(request, "PING")) // a server that is full says so, and closes without reading
	replies := bufio.NewReader(conn)
	for authed := password == ""; ; authed = true {
		reply, err := wire.ReadReply(replies)
		if err != nil {
			return "", cmp.Or(failed, err)
		}
		line := string(reply.Kind) + string(reply.Text)
		switch {
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

// pingHost is where to reach a server that listens on a host: loopback for all.
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
