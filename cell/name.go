package cell

import (
	"strings"
	"unique"
)

// Name tells limits of one shape apart, and a call says by it what it takes of them: 100000/1m,name=tokens. The zero value is none. A Name
// takes a word wherever it stands. Its text is kept once, as long as there is a Name of it.
type Name struct{ text unique.Handle[string] }

const (
	mostName  = 32 // letters
	nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)

// ParseName reads a name: 1 to 32 letters, digits, _ and -.
func ParseName(text string) (n Name, ok bool) {
	if text == "" || len(text) > mostName || strings.Trim(text, nameBytes) != "" {
		return Name{}, false
	}
	return Name{unique.Make(text)}, true
}

// String is empty for the zero value.
func (n Name) String() string {
	if n == (Name{}) {
		return ""
	}
	return n.text.Value()
}
