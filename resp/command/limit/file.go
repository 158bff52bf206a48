package limit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"celld/persistence/regular"
	"celld/resp/command/argument"
	"celld/resp/wire"
	"celld/store/policy"
)

// File is a file of policies and rules. The zero value is that of no file.
//
//	# who                         what
//	policy gold                   100/1m 10000/1d   # a plan
//	api                           100/1m
//	rule deny bad:*
//	rule allow ip: CIDR 10.0.0.0/8
//
// What follows a word that begins with # is a comment. Words may stand in quotes, as in redis-cli.
type File struct {
	Policies []*policy.Policy
	Rules    []policy.Rule

	lines []line
}

// line is a line of a File. Most have a policy or a rule.
type line struct {
	text    string // with its end
	name    string // of the policy, or RuleLine; "": it has neither
	policy  *policy.Policy
	rule    policy.Rule
	at, end int // where the limits of the policy are in the text
}

// mostBadLines is how many bad lines of a file are told one by one.
const mostBadLines = 20

// ReadFile reads a file of policies and rules. The error joins one for each bad line.
func ReadFile(path string, logMax int64) (f File, err error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("read the policies: %w", err)
	}
	return parseFile(path, string(text), logMax)
}

func parseFile(path, text string, logMax int64) (f File, err error) {
	var bad []error
	wrong, n := 0, 0
	tell := func(problem string) {
		if wrong++; wrong <= mostBadLines {
			bad = append(bad, fmt.Errorf("read the policies: %s:%d: %s", path, n, strings.TrimPrefix(problem, "ERR ")))
		}
	}
	seen := map[string]int{}
	for text := range strings.Lines(text) {
		n++
		l, problem := parseLine(text, n == 1, logMax)
		f.lines = append(f.lines, l)
		switch {
		case problem != "":
			tell(problem)
		case l.name == "":
		case seen[l.name] > 0:
			tell(fmt.Sprintf("'%s' is also in line %d", l.name, seen[l.name]))
		case l.policy != nil:
			seen[l.name] = n
			f.Policies = append(f.Policies, l.policy)
		default:
			seen[l.name] = n
			f.Rules = append(f.Rules, l.rule)
		}
		if len(f.Policies) > policy.MaxPolicies {
			tell(fmt.Sprintf("there are more than %d policies", policy.MaxPolicies))
			break
		}
		if len(f.Rules) > policy.MaxRules {
			tell(fmt.Sprintf("there are more than %d rules", policy.MaxRules))
			break
		}
	}
	if more := wrong - len(bad); more > 0 {
		bad = append(bad, fmt.Errorf("read the policies: %s: more bad lines: %d", path, more))
	}
	if wrong > 0 {
		return File{}, errors.Join(bad...)
	}
	return f, nil
}

// Warnings are lines about rules that may not mean what they seem to.
func (f *File) Warnings() (lines []string) {
	for i, l := range f.lines {
		if strings.ContainsAny(l.rule.Pattern, "?[") {
			lines = append(lines, fmt.Sprintf(warnRuleLetters, i+1, RuleLine(l.rule)))
		}
	}
	return lines
}

// parseLine reads a line.
func parseLine(text string, first bool, logMax int64) (l line, problem string) {
	l.text = text
	words, problem := splitLine(text, first)
	switch {
	case problem != "" || len(words) == 0:
		return l, problem
	case len(words) == 1:
		return l, errPolicyLine
	}
	switch keyword := string(words[0].text); keyword {
	case "policy", "rule":
		switch {
		case bytes.IndexByte(words[1].text, '/') >= 0: // as neither a name nor ALLOW has it
			return l, fmt.Sprintf(errPolicyKeyword, keyword, argument.ShortText(words[1].text))
		case keyword == "rule":
			l.rule, problem = parseRuleOfFile(words[1:])
			l.name = RuleLine(l.rule)
			return l, problem
		case len(words) == 2:
			return l, errPolicyLine
		}
		words = words[1:]
	case "allow", "pause", "deny", "ALLOW", "PAUSE", "DENY": // as CL.RULE has it
		if bytes.IndexByte(words[1].text, '/') < 0 {
			return l, errRuleLine
		}
	}
	if l.name, problem = PolicyName(words[0].text); problem != "" {
		return l, problem
	}
	limits, problem := PolicyLimits(l.name, textsOf(words[1:]), logMax)
	l.policy, l.at, l.end = policy.New(l.name, limits...), words[1].at, words[len(words)-1].end
	return l, problem
}

// parseRuleOfFile reads the words of a rule.
func parseRuleOfFile(words []word) (r policy.Rule, problem string) {
	if len(words) == 1 {
		return r, errRuleLine
	}
	args := textsOf(words)
	r, problem = parseRule(args, ruleWords, 0)
	switch {
	case problem == argument.ErrSyntax:
		problem = errRuleLine
	case problem != "" && slices.ContainsFunc(args[2:], func(arg []byte) bool { return strings.EqualFold(string(arg), "EX") }):
		problem = errRuleOfFileEX
	}
	return r, cmp.Or(problem, unmeant(&r))
}

// word is a word of a line, and where it is in the line.
type word struct {
	text    []byte
	at, end int
}

func textsOf(words []word) (texts [][]byte) {
	for _, w := range words {
		texts = append(texts, w.text)
	}
	return texts
}

// splitLine returns the words before the comment of a line. The first line of a file may begin with the byte order mark that some editors
// write.
func splitLine(text string, first bool) (words []word, problem string) {
	rest := text
	if first {
		rest = strings.TrimPrefix(rest, "\ufeff")
	}
	for {
		rest = strings.TrimLeft(rest, " \t\r\n\v\f")
		if rest == "" || rest[0] == '#' {
			return words, ""
		}
		at := len(text) - len(rest)
		one, after, ok := wire.CutWord(nil, []byte(rest))
		if !ok {
			return nil, errQuotes
		}
		rest = rest[len(rest)-len(after):]
		words = append(words, word{one, at, len(text) - len(rest)})
	}
}

// PolicyLine is the line of a file that sets a policy.
func PolicyLine(p *policy.Policy) string { return "policy " + p.Name + " " + p.String() }

// RuleLine is the line of a file that adds a rule.
func RuleLine(r policy.Rule) string {
	pattern := r.Canonical()
	odd := func(c rune) bool {
		return c == ' ' || c == '"' || c == '\'' || c == utf8.RuneError || !unicode.IsPrint(c)
	}
	if pattern == "" || pattern[0] == '#' || strings.ContainsFunc(pattern, odd) {
		pattern = string(wire.AppendWord(nil, []byte(pattern)))
	}
	if net := r.CanonicalNet(); net.IsValid() {
		pattern += " CIDR " + net.String()
	}
	return "rule " + strings.ToLower(r.Verdict()) + " " + pattern
}
