package argument

import (
	"cmp"
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
	Often   []string // of them, those that may be given several times

	OneOf [][]string // options of which a call has one at most, of each group
	Clash string     // the error of a call that has two of a group; empty: ErrSyntax
}

// Read calls set with each option in upper case, and the value of those that have one. It returns the text of the first error, its own
// or one that set returned, or "".
func (o *Options) Read(args [][]byte, set func(option string, value []byte) (text string)) (text string) {
	var room [8]string
	given := room[:0]
	for i := 0; i < len(args); i++ {
		option, valued := o.find(args[i])
		switch {
		case option == "":
			return o.refuse(args[i], ErrOption, ShortText(args[i]), o.All())
		case valued && i+1 == len(args):
			return o.refuse(args[i], ErrOptionValue, option)
		case !slices.Contains(given, option):
			if o.clashes(option, given) {
				return cmp.Or(o.Clash, ErrSyntax)
			}
			given = append(given, option)
		case (o.Refusal == "" || o.Once) && !slices.Contains(o.Often, option):
			return o.refuse(args[i], ErrOptionTwice, option)
		}
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

// clashes reports that an option may not stand beside those that were given.
func (o *Options) clashes(option string, given []string) bool {
	for _, group := range o.OneOf {
		if slices.Contains(group, option) && slices.ContainsFunc(given, func(other string) bool { return slices.Contains(group, other) }) {
			return true
		}
	}
	return false
}

// find returns the option that a word is, or "".
func (o *Options) find(word []byte) (option string, valued bool) {
	for _, flag := range o.Flags {
		if len(word) == len(flag) && strings.EqualFold(flag, string(word)) {
			return flag, false
		}
	}
	for _, name := range o.Valued {
		if len(word) == len(name) && strings.EqualFold(name, string(word)) {
			return name, true
		}
	}
	return "", false
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
