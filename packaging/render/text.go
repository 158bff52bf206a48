package main

import (
	"slices"
	"strings"
	"text/template"
)

var functions = template.FuncMap{
	"upper": strings.ToUpper, "mdoc": mdoc, "macro": macro, "comment": comment, "quote": quote, "zsh": zsh, "sentence": sentence,
	"join": strings.Join, "flag": flagOf, "others": others,
}

// mdoc writes a text as lines of mdoc(7): each sentence begins a line, and none is longer than 78 characters. A line of text must not begin
// with a character that begins a macro.
func mdoc(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		escaped := escape(word)
		ends := i > 0 && column == 0
		switch {
		case column == 0 && !ends:
		case column+1+len(escaped) > 78:
			b.WriteByte('\n')
			column = 0
		case column > 0:
			b.WriteByte(' ')
			column++
		}
		if column == 0 && strings.ContainsAny(escaped[:1], ".'") {
			escaped = `\&` + escaped
		}
		b.WriteString(escaped)
		column += len(escaped)
		if strings.HasSuffix(word, ".") || strings.HasSuffix(word, "?") {
			b.WriteByte('\n')
			column = 0
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "µ", `\(mc`, "±", `\(+-`, "…", "...")

func escape(word string) string { return escapes.Replace(word) }

// macro writes a text as arguments of a macro. A word that mdoc could take for a macro or for punctuation is marked as text.
func macro(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		word = escape(word)
		if len(word) <= 3 || strings.ContainsAny(word[:1], ".'") {
			word = `\&` + word
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

// sentence makes a sentence of a help text.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// comment writes a text as lines of a comment.
func comment(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column == 0 || column+1+len(word) > 98 {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("#")
			column = 1
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	return b.String()
}

// quote makes a word of a shell in single quotes.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// zsh writes a text as a description within a specification of _arguments, in single quotes.
func zsh(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`, "'", `'\''`).Replace(text)
}

func flagOf(p product, name string) setting {
	for _, g := range p.Groups {
		for _, s := range g.Settings {
			if s.Name == name {
				return s
			}
		}
	}
	return setting{Name: name}
}

// others names the subcommands that have flags, and not this one.
func others(p product, name string) (names []string) {
	for _, s := range p.Subcommands {
		if len(s.Flags) > 0 && !slices.Contains(s.Flags, name) {
			names = append(names, s.Name)
		}
	}
	return names
}
