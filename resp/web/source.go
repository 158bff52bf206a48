package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"celld/store/policy"
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

// keyOf makes the key of a check, and what rules see beside it; nil: nothing. The error says what the request lacks.
func (s *site) keyOf(r *http.Request, sources []source) (key string, seen *policy.Seen, err error) {
	parts, whole := make([]string, len(sources)), make([]string, len(sources))
	var addresses [][]byte
	for i, from := range sources {
		if parts[i], err = from.read(r, s.limits.TrustedProxies); err != nil {
			return "", nil, err
		}
		whole[i] = parts[i]
		if addr := from.addressIn(parts[i]); addr.IsValid() {
			parts[i] = s.limits.netOf(addr)
			addresses = append(addresses, []byte(addr.String()))
		}
	}
	key = joinKey(parts)
	if addresses != nil {
		seen = &policy.Seen{Key: []byte(joinKey(whole)), Addresses: addresses}
	}
	return key, seen, nil
}

// addressIn is the address that a value of the source is, which may have a zone, or stand in brackets and before a port. It is not valid if
// the value is none. A word is the operator's own, and Host names this side.
func (s *source) addressIn(value string) netip.Addr {
	if s.word != "" || s.header == "Host" {
		return netip.Addr{}
	}
	if !strings.HasPrefix(value, "[") {
		addr, _ := netip.ParseAddr(value)
		return addr.Unmap().WithZone("")
	}
	if strings.HasSuffix(value, "]") {
		value += ":0"
	}
	withPort, _ := netip.ParseAddrPort(value)
	return withPort.Addr().Unmap().WithZone("")
}

// netOf is what a key has of an address: of IPv6 the net, as its hosts choose the rest.
func (o *Options) netOf(addr netip.Addr) string {
	bits := cmp.Or(int(o.IPv6Prefix), defaultIPv6Prefix)
	if addr.Is4() || bits == addr.BitLen() {
		return addr.String()
	}
	net, _ := addr.Prefix(bits)
	return net.String()
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
