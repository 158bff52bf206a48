package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// newBind makes the addresses to listen on, separated by blanks or commas. The first Set replaces the default, and each other
// adds to what is there (a flag may be repeated).
func newBind(words ...string) *Param[[]string] {
	p := newParam(words, "addresses", nil, func(words []string) string { return strings.Join(words, " ") })
	byDefault := p.current.Load()
	p.read = func(text string) ([]string, error) {
		if p.current.Load() == byDefault {
			return parseBind(nil, text)
		}
		return parseBind(slices.Clone(p.Get()), text)
	}
	return p
}

// parseBind adds the addresses of a text to words.
func parseBind(words []string, text string) ([]string, error) {
	for part := range strings.SplitSeq(text, ",") {
		named := strings.Fields(part)
		if len(named) == 0 {
			return nil, errors.New("argument must name an address, and one between each two commas")
		}
		for _, word := range named {
			host, _ := strings.CutPrefix(word, "-")
			if !isBindHost(host) {
				return nil, fmt.Errorf("argument must be IP addresses, host names, * or ::*, each with at most one - in front: %.80q", word)
			}
			if slices.ContainsFunc(words, func(w string) bool { return strings.TrimPrefix(w, "-") == host }) {
				return nil, fmt.Errorf("argument must name an address once: %.80q", host)
			}
			words = append(words, word)
		}
	}
	return words, nil
}

// isBindHost says whether something can be listened on, as far as its text tells.
func isBindHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || host == "*" || host == "::*" {
		return true
	}
	letter := false
	for i, c := range []byte(host) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
			letter = true
		case '0' <= c && c <= '9':
		case (c == '-' || c == '.') && i > 0:
		default:
			return false
		}
	}
	return letter // 127.0.0.256 is no name
}
