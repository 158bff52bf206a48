package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// mostSources is how many parts a key may have.
const mostSources = 8

// mostPolicies is how many policies a path may name.
const mostPolicies = 16

// question is what a path asks: <policy>[/<policy>…][/deny/403][/x]/by/<source>[/<source>…]. It has no part of a query, which a client
// could forge through a proxy that passes its own on.
type question struct {
	policies []string
	denial   int  // the status of a denial
	legacy   bool // the answer has X-RateLimit-*
	sources  []source
}

var errForm = errors.New("expected /check/<policy>[/<policy>…][/deny/403][/x]/by/<source>[/<source>…]")

// parseQuestion reads what follows /check/, as it was sent: a slash in a name is %2F.
func parseQuestion(path string) (q question, err error) {
	words := strings.Split(path, "/")
	for i, word := range words {
		if words[i], err = url.PathUnescape(word); err != nil || word == "" {
			return question{}, errForm
		}
	}
	n := 1
	for n < len(words) && words[n] != "deny" && words[n] != "x" && words[n] != "by" {
		n++
	}
	if n > mostPolicies {
		return question{}, errForm
	}
	q = question{policies: words[:n], denial: http.StatusTooManyRequests}
	words = words[n:]
	if len(words) > 1 && words[0] == "deny" && words[1] == "403" {
		q.denial, words = http.StatusForbidden, words[2:]
	}
	if len(words) > 0 && words[0] == "x" {
		q.legacy, words = true, words[1:]
	}
	if len(words) < 2 || words[0] != "by" || len(words) > mostSources+1 {
		return question{}, errForm
	}
	for _, word := range words[1:] {
		from, err := parseSource(word)
		if err != nil {
			return question{}, err
		}
		q.sources = append(q.sources, from)
	}
	return q, nil
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
