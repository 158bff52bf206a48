package argument

import (
	"fmt"
	"slices"
	"strings"
)

// Options are what may follow the arguments of a command, in any order and any case: flags, and words that a value follows.
//
// An option that is unknown, given twice or without its value is answered with a text that says which, and names the word. Redis's own
// commands answer with Redis's Refusal instead, and there an option may be given twice, unless Once is set.
type Options struct {
	Flags   []string // upper case
	Valued  []string // upper case
	Refusal string   // empty: a text of celld's own. A %s is the word
	Once    bool     // an option given twice is refused with a Refusal, too
}

// Read calls set with each option in upper case, and the value of those that have one. It returns the text of the first error, its own
// or one that set returned, or "".
func (o *Options) Read(args [][]byte, set func(option string, value []byte) (text string)) (text string) {
	var seen uint64
	for i := 0; i < len(args); i++ {
		at, option, valued := o.find(args[i])
		twice := seen&(1<<at) != 0 && (o.Refusal == "" || o.Once)
		switch {
		case option == "":
			return o.refuse(args[i], ErrOption, ShortText(args[i]), o.All())
		case twice:
			return o.refuse(args[i], ErrOptionTwice, option)
		case valued && i+1 == len(args):
			return o.refuse(args[i], ErrOptionValue, option)
		}
		seen |= 1 << at
		var value []byte
		if valued {
			i++
			value = args[i]
		}
		if text = set(option, value); text != "" {
			return text
		}
	}
	return ""
}

// find returns an option's place among all, and "" for a word that is none.
func (o *Options) find(word []byte) (at int, option string, valued bool) {
	for i, flag := range o.Flags {
		if len(word) == len(flag) && strings.EqualFold(flag, string(word)) {
			return i, flag, false
		}
	}
	for i, name := range o.Valued {
		if len(word) == len(name) && strings.EqualFold(name, string(word)) {
			return len(o.Flags) + i, name, true
		}
	}
	return 0, "", false
}

// refuse returns Redis's text about a word, or this one.
func (o *Options) refuse(word []byte, format string, args ...any) string {
	switch {
	case o.Refusal == "":
		return fmt.Sprintf(format, args...)
	case strings.Contains(o.Refusal, "%s"):
		return fmt.Sprintf(o.Refusal, word)
	}
	return o.Refusal
}

// All lists the options: COST, ID or FULL.
func (o *Options) All() string {
	words := slices.Concat(o.Valued, o.Flags)
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// ShortText is the start of a text that an error names.
func ShortText(b []byte) string { return string(b[:min(len(b), 128)]) }
