package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// source is where a part of a key comes from.
type source struct {
	header  string // as http.Header writes it
	word    string
	address bool // the client's
}

func parseSource(text string) (source, error) {
	if word, ok := strings.CutPrefix(text, "word:"); ok {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return source{}, errors.New("word: is followed by a word without control characters")
		}
		return source{word: word}, nil
	}
	if text == "client-address" {
		return source{address: true}, nil
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return source{}, fmt.Errorf("%.64q is not a source: expected a header's name, client-address or word:<w>", text)
	}
	return source{header: http.CanonicalHeaderKey(text)}, nil
}

// read returns a part of a key, which is not empty. The error says what the request lacks.
func (s *source) read(r *http.Request, trusted []netip.Prefix) (string, error) {
	values := r.Header[s.header]
	switch {
	case s.word != "":
		return s.word, nil
	case s.address:
		return clientAddress(r, trusted)
	case s.header == "Host": // net/http keeps it elsewhere
		values = []string{r.Host}
	case len(values) > 1: // one of them may be a client's, and the other a proxy's
		return "", fmt.Errorf("the request has the header %s %d times", s.header, len(values))
	}
	if len(values) == 0 || values[0] == "" {
		return "", fmt.Errorf("the header %s is missing", s.header)
	}
	return values[0], nil
}

// clientAddress is the address that asks or, where that is a trusted proxy's, the last one in X-Forwarded-For that is not: each proxy
// appends the address that asked it, so a client may have forged the addresses before that. Where all are trusted it is the first of them.
func clientAddress(r *http.Request, trusted []netip.Prefix) (string, error) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "", errors.New("the connection has no address")
	}
	trusts := func(addr netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(net netip.Prefix) bool { return net.Contains(addr) })
	}
	client := at.Addr().Unmap().WithZone("")
	if !trusts(client) {
		return client.String(), nil
	}
	list := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(list) - 1; i >= 0; i-- {
		if client, err = parseForwarded(strings.Trim(list[i], " \t")); err != nil {
			return "", errors.New("X-Forwarded-For of a trusted proxy has no address where one is expected")
		}
		if !trusts(client) {
			break
		}
	}
	return client.String(), nil
}

// parseForwarded reads an address, behind which some proxies write a port.
func parseForwarded(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(text)
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), err
}
