package domains

import (
	"regexp"
	"slices"
	"strings"

	"celld/resp/envoy/message"
)

// Set is all domains of a configuration. nil is one without domains.
type Set struct {
	domains  map[string]*node
	warnings []string
}

// Warnings are what is well formed, and most likely not meant.
func (s *Set) Warnings() []string { return s.warnings }

// Has reports a domain.
func (s *Set) Has(domain string) bool { return s != nil && s.domains[domain] != nil }

// Len is how many domains there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.domains)
}

// Limits is how many limits there are.
func (s *Set) Limits() (n int) {
	for _, domain := range s.domains {
		n += domain.limits()
	}
	return n
}

func (n *node) limits() (sum int) {
	if n.limit != nil {
		sum++
	}
	for _, child := range n.children {
		sum += child.limits()
	}
	return sum
}

// node is a descriptor of the configuration, or a domain.
type node struct {
	name     string   // key, or key_value
	pattern  []string // the name between its *; nil: there is no *
	share    bool     // what the pattern matches shares a count
	byValue  bool     // statistics tell values apart
	limit    *Limit   // nil: none
	children map[string]*node
	patterns []*node // children with a pattern, in the order of the file
}

// Match is a limit that holds for a descriptor.
type Match struct {
	*Limit

	// Shared is for each entry what stands for its value in the count's key; "": the value itself. nil: all values do.
	Shared []string
	Series Series
}

// Find returns the limit of a descriptor. It is that of the configuration, whatever the descriptor says of a limit.
func (s *Set) Find(domain string, entries []message.Entry) (m Match, ok bool) {
	if !s.Has(domain) || len(entries) == 0 {
		return m, false
	}
	at, byValue := s.domains[domain], false
	for i, e := range entries {
		next, byPattern := at.child(e)
		if next == nil {
			return m, false
		}
		if byPattern && next.share {
			if m.Shared == nil {
				m.Shared = make([]string, len(entries))
			}
			m.Shared[i] = strings.TrimPrefix(next.name, e.Key+"_")
		}
		at, byValue = next, byValue || next.byValue
	}
	if m.Limit = at.limit; m.Limit == nil {
		return m, false
	}
	m.Series = m.Limit.series
	if byValue || m.Detailed {
		m.Series = s.seriesOf(domain, entries, &m)
	}
	return m, true
}

// child is the node to which an entry leads, or nil, and whether the node's pattern has led there.
func (n *node) child(e message.Entry) (next *node, byPattern bool) {
	var room [128]byte
	whole := append(append(append(room[:0], e.Key...), '_'), e.Value...)
	if exact := n.children[string(whole)]; exact != nil {
		return exact, false
	}
	if len(n.patterns) > 0 {
		text := string(whole)
		if at := slices.IndexFunc(n.patterns, func(p *node) bool { return matches(p.pattern, text) }); at >= 0 {
			return n.patterns[at], true
		}
	}
	return n.children[e.Key], false
}

// matches reports whether a text is the parts in their order, with anything between them.
func matches(parts []string, text string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// Series names the statistics of a limit: a domain, and the first two levels of the path to it. Deeper limits share the series of their
// second level.
type Series struct{ Domain, Key1, Key2 string }

// seriesOf is the series of a limit that tells values apart.
func (s *Set) seriesOf(domain string, entries []message.Entry, m *Match) Series {
	at := s.domains[domain]
	var path []string
	for i, e := range entries[:min(2, len(entries))] {
		next, _ := at.child(e)
		part := next.name
		switch {
		case m.Shared != nil && m.Shared[i] != "":
			part = e.Key + "_" + m.Shared[i]
		case m.Detailed && m.Shared == nil:
			part = name(e)
		case m.Detailed || next.byValue:
			part = shortName(e)
		}
		path, at = append(path, part), next
	}
	return seriesAt(domain, path)
}

// SeriesOf is the series of a limit that a descriptor brings along.
func SeriesOf(domain string, entries []message.Entry) Series {
	var path []string
	for _, e := range entries[:min(2, len(entries))] {
		path = append(path, shortName(e))
	}
	return seriesAt(domain, path)
}

// seriesAt is the series of a path.
func seriesAt(domain string, path []string) Series {
	s := Series{Domain: label(domain)}
	if len(path) > 0 {
		s.Key1 = label(path[0])
	}
	if len(path) > 1 {
		s.Key2 = label(path[1])
	}
	return s
}

var separators = strings.NewReplacer(":", "_", "|", "_")

var ipv4 = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// mostLabel is how long a label is, in bytes: values come from the calls.
const mostLabel = 128

// label is a text as envoyproxy/ratelimit writes it in the name of a statistic.
func label(text string) string {
	text = separators.Replace(text)
	text = ipv4.ReplaceAllStringFunc(text, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
	if len(text) > mostLabel {
		text = strings.ToValidUTF8(text[:mostLabel], "")
	}
	return text
}

func name(e message.Entry) string { return e.Key + "_" + e.Value }

// shortName is the name without a _ where there is no value.
func shortName(e message.Entry) string {
	if e.Value == "" {
		return e.Key
	}
	return name(e)
}
