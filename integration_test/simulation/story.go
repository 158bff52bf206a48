package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A story is a trace that people can follow, or type in: commands of redis-cli and curl with the answers that they had, and what happened
// between them, at which time.

var (
	// line is an event of a trace: its number, when it was, who was there, and what.
	line = regexp.MustCompile(`^\d+ +(\S+) ([^:]+): (.*)$`)
	// logged is what celld logs, which the story leaves out.
	logged = regexp.MustCompile(`^(DEBUG|INFO|WARN|ERROR) `)
	// usual is what each world does at its beginning and its end, which the story leaves out.
	usual = regexp.MustCompile(`^(serves|shall be ready and idle|life \d+ is told to stop)$`)
	// listed is a line of what nothing explains.
	listed = regexp.MustCompile(`^  \d+-\d+ client `)
	// loud is a line by itself in a trace, which tells what is wrong.
	loud = regexp.MustCompile(`^(FAULT |panic: |fatal error: )`)
	// posted is a call by JSON, and where it goes.
	posted = regexp.MustCompile(`^posts (\S+) to (\S+): (.*)$`)
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// plain is a word that a shell takes as it is.
	plain = regexp.MustCompile(`^[\w./:,=@%+{}-]+$`)
)

// storyOf tells what a trace says.
func storyOf(trace string) string {
	var told []string
	type ask struct {
		at   int // where it is told
		text string
	}
	wrong, failed := false, false
	asked := map[string][]ask{} // by who asks: what has no answer yet
	long := false               // the next lines go on with an answer, or tell how the world ends, and are left out
	for one := range strings.Lines(trace) {
		parts := line.FindStringSubmatch(strings.TrimRight(one, "\r\n"))
		if parts == nil {
			fault := strings.HasPrefix(one, "FAULT ")
			long = long && !loud.MatchString(one) || fault && failed // the first tells what is wrong
			if failed = failed || fault; !long && !strings.HasPrefix(one, "hash=") && !strings.HasPrefix(one, "drawn=") {
				if listed.MatchString(one) && listed.MatchString(told[len(told)-1]) { // the last is what those before do not explain
					told = told[:len(told)-1]
				}
				told = append(told, strings.TrimRight(one, "\r\n")) // it goes on from the line before, or is a FAULT
			}
			continue
		}
		if long = wrong; wrong {
			continue
		}
		at, who, what := parts[1], parts[2], parts[3]
		wrong = who == "checker" // what comes later does not matter
		command := ""
		switch post := posted.FindStringSubmatch(what); {
		case logged.MatchString(what), usual.MatchString(what), who == "the end":
			long = true
			continue
		case post != nil:
			command = "curl " + post[2] + ":8080" + post[1] + " --json " + word(post[3])
		case strings.HasPrefix(what, "fetches "):
			path, host, _ := strings.Cut(strings.TrimPrefix(what, "fetches "), " from ")
			command = "curl " + host + ":8080" + path
		case strings.HasPrefix(what, "asks ["):
			command = "redis-cli"
			for _, text := range quoted.FindAllString(what, -1) {
				text, _ = strconv.Unquote(text)
				command += " " + word(text)
			}
		case strings.HasPrefix(what, "asks "):
			command = "redis-cli " + strings.TrimPrefix(what, "asks ")
		case strings.HasPrefix(what, "is answered "), strings.HasPrefix(what, "gets "), strings.HasPrefix(what, "has no answer"):
			if list := asked[who]; len(list) > 0 {
				what = strings.TrimPrefix(strings.TrimPrefix(what, "is answered "), "gets ")
				told[list[0].at] += "  → " + strings.Replace(what, " to "+list[0].text, "", 1)
				asked[who], long = list[1:], true
				continue
			}
		}
		if command == "" {
			told = append(told, fmt.Sprintf("%12s  %s: %s", at, who, what))
			continue
		}
		asked[who] = append(asked[who], ask{len(told), strings.TrimPrefix(what, "asks ")})
		told = append(told, fmt.Sprintf("%12s  %s$ %s", at, who, command))
	}
	return strings.Join(told, "\n") + "\n"
}

// word is a word as a shell takes it.
func word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
