package resp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// bindValue is the addresses to listen on, separated by blanks or commas. The first Set replaces the default, and each other
// adds to what is there (a flag may be repeated).
type bindValue struct {
	hooks[[]string]
	words []string
	isSet bool
}

func newBind(words ...string) *bindValue { return &bindValue{words: words} }

func (v *bindValue) Get() []string         { return v.words }
func (v *bindValue) String() string        { return strings.Join(v.words, " ") }
func (v *bindValue) Type() string          { return "addresses" }
func (v *bindValue) Set(text string) error { return set(v.parse(text)) }

func (v *bindValue) parse(text string) (change, error) {
	var words []string
	if v.isSet {
		words = slices.Clone(v.words)
	}
	for part := range strings.SplitSeq(text, ",") {
		named := strings.Fields(part)
		if len(named) == 0 {
			return change{}, errors.New("argument must name an address, and one between each two commas")
		}
		for _, word := range named {
			host, _ := strings.CutPrefix(word, "-")
			if !isBindHost(host) {
				return change{}, fmt.Errorf("argument must be IP addresses, host names, * or ::*, each with at most one - in front: %.80q", word)
			}
			if slices.ContainsFunc(words, func(w string) bool { return strings.TrimPrefix(w, "-") == host }) {
				return change{}, fmt.Errorf("argument must name an address once: %.80q", host)
			}
			words = append(words, word)
		}
	}
	return v.change(words, func() { v.words, v.isSet = words, true }), nil
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
