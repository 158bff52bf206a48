package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
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
	for _, c := range []byte(text) {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if (c < '0' || c > '9') && c != '-' && c != '_' {
				return source{}, fmt.Errorf("%.64q is no source: expected a header's name, client-address or word:<w>", text)
			}
		}
	}
	return source{header: http.CanonicalHeaderKey(text)}, nil
}

// read returns a part of a key, which is not empty. The error says what the request lacks.
func (s *source) read(r *http.Request, trusted []netip.Prefix) (string, error) {
	switch {
	case s.word != "":
		return s.word, nil
	case s.address:
		return clientAddress(r, trusted)
	case s.header == "Host": // net/http keeps it elsewhere
		return r.Host, notEmpty("Host", r.Host)
	}
	values := r.Header[s.header]
	if len(values) > 1 { // one of them may be a client's, and the other a proxy's
		return "", fmt.Errorf("the header %s is there %d times", s.header, len(values))
	}
	if len(values) == 0 {
		return "", notEmpty(s.header, "")
	}
	return values[0], notEmpty(s.header, values[0])
}

func notEmpty(header, value string) error {
	if value == "" {
		return fmt.Errorf("the header %s is missing", header)
	}
	return nil
}

// clientAddress is the address that asks or, where that is a trusted proxy's, the last one in X-Forwarded-For that is not: each proxy appends
// whom it was asked by, so what stands before that may be forged. Where all are trusted it is the first of them.
func clientAddress(r *http.Request, trusted []netip.Prefix) (string, error) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "", errors.New("the connection has no address")
	}
	client := at.Addr().Unmap().WithZone("")
	if !contains(trusted, client) {
		return client.String(), nil
	}
	list := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(list) - 1; i >= 0; i-- {
		if client, err = parseForwarded(strings.Trim(list[i], " \t")); err != nil {
			return "", errors.New("X-Forwarded-For of a trusted proxy has no address where one is expected")
		}
		if !contains(trusted, client) {
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
		if withPort, err = netip.ParseAddrPort(text); err != nil {
			return addr, err
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), nil
}

func contains(nets []netip.Prefix, addr netip.Addr) bool {
	for _, p := range nets {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
