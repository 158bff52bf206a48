package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"celld/cell"
	"celld/resp/door"
)

// mostSources is how many parts a key may have.
const mostSources = 8

// mostPolicies is how many policies a path may name.
const mostPolicies = 16

// question is what a path asks: see errForm. It has no part of a query, which a client could forge through a proxy that passes its own on.
type question struct {
	policies []string
	costs    []door.Option // COST, and OF after one of a name
	denial   int           // the status of a denial
	legacy   bool          // the answer has X-RateLimit-*
	sources  []source
}

var (
	errForm = errors.New("expected /check/<policy>[/<policy>…][/cost/<n>[/of/<name>]…][/deny/403][/x]/by/<source>[/<source>…], " +
		"or /look/… or /give/…")
	errCost = fmt.Errorf("cost is followed by a number, 0 to %d", int64(cell.MaxCost))
)

// reserved are the words that no policy has in a path. @cost is the policy cost.
var reserved = []string{"cost", "deny", "x", "of", "by"}

// parseQuestion reads what follows /check/, as it was sent: a slash in a name is %2F. The error is errCost for a cost that is none.
func parseQuestion(path string) (q question, err error) {
	words := strings.Split(path, "/")
	for i, word := range words {
		if words[i], err = url.PathUnescape(word); err != nil || word == "" {
			return question{}, errForm
		}
	}
	n := 1
	for n < len(words) && !slices.Contains(reserved, words[n]) {
		n++
	}
	if n > mostPolicies {
		return question{}, errForm
	}
	q = question{denial: http.StatusTooManyRequests}
	for _, word := range words[:n] {
		name := strings.TrimPrefix(word, "@")
		if name == "" {
			return question{}, errForm
		}
		q.policies = append(q.policies, name)
	}
	if words, err = q.readOptions(words[n:]); err != nil {
		return question{}, err
	}
	if len(words) > mostSources {
		return question{}, errForm
	}
	for _, word := range words {
		from, err := parseSource(word)
		if err != nil {
			return question{}, err
		}
		q.sources = append(q.sources, from)
	}
	return q, nil
}

// readOptions reads what stands before by, in any order, and returns what follows it. Costs of names may be several, of the rest each once.
func (q *question) readOptions(words []string) (rest []string, err error) {
	var seen []string
	for len(words) > 1 {
		name, value := words[0], words[1]
		switch name {
		case "by":
			return words[1:], nil
		case "x":
			q.legacy, words = true, words[1:]
		case "cost":
			n, err := strconv.ParseUint(value, 10, 53)
			if err != nil {
				return nil, errCost
			}
			q.costs, words = append(q.costs, door.Option{Name: "COST", N: int64(n)}), words[2:]
			if len(words) > 2 && words[0] == "of" {
				q.costs, words = append(q.costs, door.Option{Name: "OF", Text: words[1]}), words[2:]
				continue // other names may follow
			}
		case "deny":
			if value != "403" {
				return nil, errForm
			}
			q.denial, words = http.StatusForbidden, words[2:]
		default:
			return nil, errForm
		}
		if slices.Contains(seen, name) {
			return nil, errForm
		}
		seen = append(seen, name)
	}
	return nil, errForm
}

// several reports more than one cost.
func (q *question) several() bool {
	return len(slices.DeleteFunc(slices.Clone(q.costs), func(o door.Option) bool { return o.Name == "OF" })) > 1
}

// joinKey makes the key of a check. One part is the key itself, so that CL.TAKE 192.0.2.1 @api asks the same limit. Several parts are
// each written as /length/part, so no two lists make one key; and neither does one part that begins with a slash, as it is written so, too.
func joinKey(parts []string) string {
	if len(parts) == 1 && parts[0][0] != '/' {
		return parts[0]
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + strconv.Itoa(len(part)) + "/" + part)
	}
	return b.String()
}
