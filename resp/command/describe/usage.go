package describe

import (
	"strings"

	"celld/resp/command"
)

// usageArg is one argument of a command as COMMAND DOCS describes it. redis-cli shows hints from these.
type usageArg struct {
	name     string
	kind     string // key, integer, unix-time, string, pattern, pure-token, block, oneof
	token    string // the literal word before it
	optional bool
	multiple bool
	parts    []usageArg // of a block or oneof
}

// parseUsage reads the usage of a row: words, [optional], a|b for a choice, ... behind what may be repeated, UPPER case for
// literal words. COMMAND DOCS, HELP and redis-cli's hints all come from it, so they cannot disagree.
func parseUsage(usage string) []usageArg {
	p := usageParser{words: tokenize(usage)}
	return p.sequence("")
}

type usageParser struct {
	words []string
	next  int
}

func tokenize(usage string) []string {
	return strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "|", " | ").Replace(usage))
}

func (p *usageParser) peek() string {
	if p.next < len(p.words) {
		return p.words[p.next]
	}
	return ""
}

// sequence reads arguments up to the closing word.
func (p *usageParser) sequence(until string) []usageArg {
	var list []usageArg
	for p.next < len(p.words) && p.peek() != until {
		list = append(list, p.choice())
	}
	p.next++
	return list
}

// choice reads alternatives separated by |, and marks what may be repeated.
func (p *usageParser) choice() usageArg {
	alternatives := []usageArg{p.one()}
	for p.peek() == "|" {
		p.next++
		alternatives = append(alternatives, p.one())
	}
	arg := alternatives[0]
	if len(alternatives) > 1 {
		arg = usageArg{name: strings.ToLower(alternatives[0].name), kind: "oneof", parts: alternatives}
	}
	if p.peek() == "..." {
		p.next++
		arg.multiple = true
	}
	return arg
}

// one reads a word, a literal with its value, or an optional group.
func (p *usageParser) one() usageArg {
	word := p.peek()
	p.next++
	if word == "[" {
		inner := p.sequence("]")
		arg := inner[0]
		if len(inner) > 1 {
			arg = usageArg{name: inner[0].name, kind: "block", parts: inner}
		}
		arg.optional = true
		return arg
	}
	if word != strings.ToUpper(word) {
		return usageArg{name: word, kind: kindOf(word)}
	}
	name := strings.ToLower(word)
	switch following := p.peek(); following {
	case "", "[", "]", "|", "...":
		return usageArg{name: name, kind: "pure-token", token: word}
	default:
		if following == strings.ToUpper(following) {
			return usageArg{name: name, kind: "pure-token", token: word}
		}
		arg := p.one()
		arg.token = word
		return arg
	}
}

func kindOf(word string) string {
	switch word {
	case "key", "newkey", "source", "destination":
		return "key"
	case "pattern":
		return "pattern"
	case "unix-time-seconds", "unix-time-milliseconds":
		return "unix-time"
	case "n", "id", "max", "ms", "max_burst", "max-burst", "tokens-per-period", "destination-db", "count", "period", "quantity",
		"seconds", "milliseconds", "cursor", "index", "client-id", "protover", "integer", "increment", "decrement", "lowerbound",
		"upperbound", "start", "end", "numkeys", "bits":
		return "integer"
	}
	return "string"
}

func replyArguments(c *command.Call, list []usageArg) {
	c.Array(len(list))
	for _, arg := range list {
		fields := 2
		for _, more := range []bool{arg.kind == "key", arg.token != "", arg.optional || arg.multiple, len(arg.parts) > 0} {
			if more {
				fields++
			}
		}
		c.Map(fields)
		c.Pair("name", arg.name)
		c.Pair("type", arg.kind)
		if arg.kind == "key" {
			c.Field("key_spec_index", 0)
		}
		if arg.token != "" {
			c.Pair("token", arg.token)
		}
		if arg.optional || arg.multiple {
			var flags []string
			if arg.optional {
				flags = append(flags, "optional")
			}
			if arg.multiple {
				flags = append(flags, "multiple")
			}
			c.String("flags")
			c.Statuses(flags)
		}
		if len(arg.parts) > 0 {
			c.String("arguments")
			replyArguments(c, arg.parts)
		}
	}
}
