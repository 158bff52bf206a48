package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// textError is what is wrong with a rule or a name, in Redis's words where Redis has them.
type textError string

func (e textError) Error() string { return string(e) }

const (
	errSyntax     textError = "Syntax error"
	errUnknown    textError = "Unknown command or category name in ACL"
	errAfterAll   textError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errNoPassword textError = "The password you are trying to remove from the user does not exist"
	errHash       textError = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errFirstArg   textError = "Allowing first-arg of a subcommand is not supported"
	errMany       textError = "A user has at most 1000 passwords, patterns and rules on commands"
	errChannel    textError = "celld has no channels"
	errSelector   textError = "celld has no selectors"
)

// flags are the rules that are words.
var flags = map[string]func(r *Rights){
	"on":             func(r *Rights) { r.on = true },
	"off":            func(r *Rights) { r.on = false },
	"nopass":         func(r *Rights) { r.noPass, r.passwords = true, nil },
	"resetpass":      func(r *Rights) { r.noPass, r.passwords = false, nil },
	sanitize:         func(r *Rights) { r.sanitize = sanitize },
	skipSanitize:     func(r *Rights) { r.sanitize = skipSanitize },
	"allkeys":        func(r *Rights) { r.allKeys, r.patterns = true, nil },
	"~*":             func(r *Rights) { r.allKeys, r.patterns = true, nil },
	"resetkeys":      func(r *Rights) { r.allKeys, r.patterns = false, nil },
	"allchannels":    func(r *Rights) { r.channels = true },
	"&*":             func(r *Rights) { r.channels = true },
	"resetchannels":  func(r *Rights) { r.channels = false },
	"clearselectors": func(*Rights) {},
	"allcommands":    func(r *Rights) { r.allow(true) },
	"+@all":          func(r *Rights) { r.allow(true) },
	"nocommands":     func(r *Rights) { r.allow(false) },
	"-@all":          func(r *Rights) { r.allow(false) },
	"reset": func(r *Rights) {
		*r = *noRights(r.table)
		r.sanitize = sanitize
	},
}

// apply applies a rule. An empty one changes nothing.
func (r *Rights) apply(rule string) error {
	if rule == "" {
		return nil
	}
	if set := flags[lower(rule)]; set != nil {
		set(r)
	} else if err := r.applyTo(rule[0], rule[1:]); err != nil {
		return err
	}
	if max(len(r.passwords), len(r.patterns), len(r.rules)) > MostOfAKind {
		return errMany
	}
	return nil
}

// applyTo applies a rule that begins with a sign.
func (r *Rights) applyTo(sign byte, what string) error {
	switch sign {
	case '>', '#', '<', '!':
		return r.password(sign, what)
	case '~':
		return r.addPattern(Reads|Writes, what)
	case '%':
		letters, text, found := strings.Cut(what, "~")
		access, ok := parseAccess(letters)
		if !found || !ok {
			return errSyntax
		}
		return r.addPattern(access, text)
	case '+', '-':
		if category, ok := strings.CutPrefix(what, "@"); ok {
			return r.category(sign, category)
		}
		return r.command(sign, what)
	case '&':
		return errChannel
	case '(':
		return errSelector
	}
	return errSyntax
}

// password adds or removes one: > and < are followed by it, # and ! by its SHA-256.
func (r *Rights) password(sign byte, text string) error {
	d := digest(sha256.Sum256([]byte(text)))
	if sign == '#' || sign == '!' {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != len(d) || text != lower(text) {
			return errHash
		}
		d = digest(sum)
	}
	at := slices.Index(r.passwords, d)
	switch adds := sign == '>' || sign == '#'; {
	case adds:
		r.noPass = false
		if at < 0 {
			r.passwords = append(r.passwords, d)
		}
	case at < 0:
		return errNoPassword
	default:
		r.passwords = slices.Delete(r.passwords, at, at+1)
	}
	return nil
}

// parseAccess reads R, W or both.
func parseAccess(letters string) (access Access, ok bool) {
	for _, letter := range lower(letters) {
		bit := map[rune]Access{'r': Reads, 'w': Writes}[letter]
		if bit == 0 || access&bit != 0 {
			return 0, false
		}
		access |= bit
	}
	return access, access != 0
}

func (r *Rights) addPattern(access Access, text string) error {
	switch {
	case r.allKeys:
		return errAfterAll
	case hasSpaces(text):
		return errSyntax
	}
	for i := range r.patterns {
		if r.patterns[i].glob == text {
			r.patterns[i].access |= access
			return nil
		}
	}
	match, problem := r.table.compile(text)
	if problem != "" {
		return textError(problem)
	}
	r.patterns = append(r.patterns, pattern{access, text, match})
	return nil
}

func (r *Rights) category(sign byte, name string) error {
	category := ParseCategory(name)
	if category == 0 {
		return errUnknown
	}
	for _, c := range r.table.commands {
		if c.Categories&category != 0 {
			r.set(c, sign == '+')
		}
	}
	r.note(sign, "@"+lower(name))
	return nil
}

func (r *Rights) command(sign byte, name string) error {
	c := r.table.find(name)
	if at := strings.LastIndexByte(name, '|'); c == nil && sign == '+' && at >= 0 {
		return r.firstArg(name[:at], name[at+1:])
	}
	if c == nil {
		return errUnknown
	}
	r.set(c, sign == '+')
	r.note(sign, c.Name)
	return nil
}

// firstArg allows a command with one first argument: +select|0.
func (r *Rights) firstArg(name, arg string) error {
	c := r.table.find(name)
	switch {
	case c == nil:
		return errUnknown
	case c.parent != nil:
		return errFirstArg
	case arg == "":
		return errSyntax
	case len(c.Subs) > 0:
		return errUnknown
	case hasSpaces(arg):
		return errSyntax
	}
	arg = lower(arg)
	if args := r.firstArgs[c.id]; !slices.Contains(args, arg) {
		if r.firstArgs == nil {
			r.firstArgs = map[int][]string{}
		}
		r.firstArgs[c.id] = append(slices.Clip(args), arg)
	}
	r.note('+', c.Name+"|"+arg)
	return nil
}

// set allows or forbids a command and all of its subcommands.
func (r *Rights) set(c *Command, allowed bool) {
	bit := uint64(1) << (c.id % 64)
	if allowed {
		r.allowed[c.id/64] |= bit
	} else {
		r.allowed[c.id/64] &^= bit
		r.all = false
	}
	delete(r.firstArgs, c.id)
	for _, sub := range c.Subs {
		r.set(sub, allowed)
	}
}

// note keeps a rule on commands, in place of those before it that it makes void.
func (r *Rights) note(sign byte, what string) {
	r.rules = slices.DeleteFunc(r.rules, func(rule string) bool { return rule[1:] == what || strings.HasPrefix(rule[1:], what+"|") })
	r.rules = append(r.rules, string(sign)+what)
}
