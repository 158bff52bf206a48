package domains

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"

	"celld/cell"
	"celld/resp/envoy/message"
)

// Limit is a rate_limit of the configuration.
type Limit struct {
	message.Limit           // of a policy: the zero value
	Unlimited     bool      // the call passes, and nothing is counted
	Shadow        bool      // what is over passes
	Quota         bool      // the call passes while another quota is left
	Detailed      bool      // statistics have the whole path
	Replaces      []string  // names of limits that do not count in a call that this one matches
	Metadata      *Metadata // nil: none

	Algorithm string      // celld's; "": calls are counted in windows, also over the limit
	Policy    string      // which decides, where Algorithm is @ and its name
	Decides   *cell.Limit // which decides where it is another algorithm; nil with a count of 0, as nothing passes

	series Series
}

// Metadata is what a limit adds to the dynamic metadata of calls that pass. Nobody may change it.
type Metadata struct{ Fields map[string]any }

// File is a file of the configuration.
type File struct {
	Name string
	Text []byte
}

// Options say how files are read together.
type Options struct{ Merge bool } // a domain may stand in several files

// Parse reads a configuration. The error joins one for each mistake, which names the file.
func Parse(files []File, o Options) (*Set, error) {
	p := parser{set: &Set{domains: map[string]*node{}}, merge: o.Merge}
	for _, file := range files {
		p.file = file.Name
		p.read(file.Text)
	}
	if len(p.errors) > 0 {
		return nil, errors.Join(p.errors...)
	}
	return p.set, nil
}

type parser struct {
	set    *Set
	merge  bool
	file   string
	errors []error

	descriptors int // of a server's messages
}

// mostErrors are told. A message of 4 MB may have two million empty descriptors.
const mostErrors = 100

func (p *parser) fail(format string, args ...any) {
	if len(p.errors) == mostErrors {
		return
	}
	p.errors = append(p.errors, fmt.Errorf("%s: "+format, append([]any{p.file}, args...)...))
}

// The YAML of a file.
type (
	yamlRoot struct {
		Domain      string
		Descriptors []yamlDescriptor
	}
	yamlDescriptor struct {
		Key            string
		Value          string
		RateLimit      *yamlLimit `yaml:"rate_limit"`
		Descriptors    []yamlDescriptor
		ShadowMode     bool `yaml:"shadow_mode"`
		QuotaMode      bool `yaml:"quota_mode"`
		DetailedMetric bool `yaml:"detailed_metric"`
		ValueToMetric  bool `yaml:"value_to_metric"`
		ShareThreshold bool `yaml:"share_threshold"`
		Metadata       map[string]any
	}
	yamlLimit struct {
		RequestsPerUnit *uint32 `yaml:"requests_per_unit"`
		Unit            string
		Unlimited       bool
		Name            string
		Replaces        []struct{ Name string }
		Algorithm       string // celld's own
	}
)

// known are all keys. As in envoyproxy/ratelimit, one that stands at another level than its own does nothing.
var known = []string{"domain", "key", "value", "descriptors", "rate_limit", "unit", "requests_per_unit", "unlimited", "shadow_mode",
	"quota_mode", "name", "replaces", "detailed_metric", "value_to_metric", "share_threshold", "metadata", "algorithm"}

// warn notes what envoyproxy/ratelimit accepts without a word.
func (p *parser) warn(text string) { p.set.warnings = append(p.set.warnings, p.file+": "+text) }

// read reads a file. Only its first document counts, and of a key that stands twice the last. The library is the one that keeps
// envoyproxy/ratelimit's up: YAML 1.1.
func (p *parser) read(text []byte) {
	var whole map[any]any
	documents := yaml.NewDecoder(bytes.NewReader(text))
	documents.SetStrict(true)
	err, mistakes := documents.Decode(&whole), (*yaml.TypeError)(nil)
	if errors.As(err, &mistakes) {
		for _, mistake := range mistakes.Errors {
			if strings.HasSuffix(mistake, "already set in map") {
				p.warn(mistake + ": the last one counts")
			}
		}
		whole = nil
		err = yaml.Unmarshal(text, &whole)
	}
	if err != nil && err != io.EOF {
		p.fail("%s", oneLine(err))
		return
	}
	var more any
	if err := documents.Decode(&more); err != io.EOF && (err != nil || more != nil) {
		p.warn("what stands behind --- is a second document, which does not count")
	}
	before := len(p.errors)
	p.check(whole)
	var root yamlRoot
	if len(p.errors) > before {
		return
	}
	if err := yaml.Unmarshal(text, &root); err != nil {
		p.fail("%s", oneLine(err))
		return
	}
	p.take(&root)
}

// take takes a domain.
func (p *parser) take(root *yamlRoot) {
	if root.Domain == "" {
		p.fail("expected a domain, such as domain: shop")
		return
	}
	domain := p.set.domains[root.Domain]
	switch {
	case domain == nil:
		domain = &node{children: map[string]*node{}}
		p.set.domains[root.Domain] = domain
	case !p.merge:
		p.fail("the domain '%s' stands twice", root.Domain)
		return
	}
	p.add(domain, root.Domain, nil, root.Descriptors)
}

// oneLine is an error of the YAML library, which may have several lines.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// check finds keys that are not known, and values of kinds that no field has.
func (p *parser) check(whole map[any]any) {
	keys := slices.SortedFunc(maps.Keys(whole), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys { // sorted, so that the log has the mistakes of a file in one order
		value := whole[key]
		name, isText := key.(string)
		switch {
		case !isText:
			p.fail("the key %v is no text", key)
			continue
		case !slices.Contains(known, name):
			p.fail("unknown key '%.64s'", name)
			continue
		case name == "metadata":
			continue
		}
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				if inner, isMap := element.(map[any]any); isMap {
					p.check(inner)
				} else {
					p.fail("%s: expected a list of maps, not of %.64s", name, fmt.Sprint(element))
				}
			}
		case map[any]any:
			p.check(v)
		case string, int, bool, nil:
		default:
			p.fail(`%s: expected a text or an integer; write "%v" in quotes`, name, v)
		}
	}
}

// add adds descriptors to a node. path leads to it.
func (p *parser) add(to *node, domain string, path []string, list []yamlDescriptor) {
	for i := range list {
		d := &list[i]
		if d.Key == "" {
			p.fail("a descriptor below %s has no key", strings.Join(append([]string{domain}, path...), "."))
			continue
		}
		n := &node{name: d.Key, share: d.ShareThreshold, byValue: d.ValueToMetric, children: map[string]*node{}}
		if d.Value != "" {
			n.name += "_" + d.Value
		}
		own := append(slices.Clip(path), n.name)
		where := domain + "." + strings.Join(own, ".")
		if to.children[n.name] != nil {
			p.fail("%s stands twice (key and value are joined by _)", where)
			continue
		}
		if strings.Contains(n.name, "*") {
			n.pattern = strings.Split(n.name, "*")
			to.patterns = append(to.patterns, n)
		} else if n.share {
			p.fail("%s: share_threshold is for a value with *", where)
		}
		n.limit = p.limit(where, d)
		if n.limit != nil {
			n.limit.series = seriesAt(domain, own)
		}
		to.children[n.name] = n
		p.add(n, domain, own, d.Descriptors)
	}
}

// limit reads the limit of a descriptor; nil: it has none, or a mistake.
func (p *parser) limit(where string, d *yamlDescriptor) *Limit {
	metadata, err := readMetadata(d.Metadata)
	if err != nil {
		p.fail("%s: metadata: %v", where, err)
	}
	y := d.RateLimit
	if y == nil {
		return nil
	}
	l := &Limit{Unlimited: y.Unlimited, Shadow: d.ShadowMode, Quota: d.QuotaMode, Detailed: d.DetailedMetric, Metadata: metadata,
		Algorithm: y.Algorithm}
	l.Unit, l.Name = message.UnitNamed(y.Unit), y.Name
	if y.RequestsPerUnit != nil {
		l.Requests = *y.RequestsPerUnit
	}
	for _, r := range y.Replaces {
		switch r.Name {
		case "":
			p.fail("%s: replaces: expected a name", where)
		case y.Name:
			p.fail("%s: a limit cannot replace itself", where)
		}
		l.Replaces = append(l.Replaces, r.Name)
	}
	policy, isPolicy := strings.CutPrefix(y.Algorithm, "@")
	switch {
	case l.Unlimited && l.Unit != message.Unknown:
		p.fail("%s: unlimited has no unit", where)
	case l.Unlimited && y.Algorithm != "":
		p.fail("%s: unlimited has no algorithm", where)
	case l.Unlimited:
	case isPolicy && (y.Unit != "" || y.RequestsPerUnit != nil):
		p.fail("%s: the policy %s has limits of its own: leave out unit and requests_per_unit", where, y.Algorithm)
	case isPolicy && policy == "":
		p.fail("%s: algorithm: expected the name of a policy behind @", where)
	case isPolicy:
		l.Policy = policy
	case l.Unit == message.Unknown:
		p.fail("%s: unit '%.64s': expected second, minute, hour, day, week, month or year", where, y.Unit)
	case y.Algorithm != "":
		if l.Decides, err = decides(l.Limit, y.Algorithm); err != nil {
			p.fail("%s: algorithm: %v", where, err)
		}
	}
	return l
}

// decides is a limit of celld with the count and the period of l, and an algorithm: what may stand behind algo= in a limit, such as slide
// or gcra,burst=20. For a count of 0 it is nil.
func decides(l message.Limit, algorithm string) (*cell.Limit, error) {
	limit, err := cell.ParseLimit(fmt.Sprintf("%d/%ds,algo=%s", max(l.Requests, 1), l.Unit.Period()/time.Second, algorithm))
	switch {
	case err != nil:
		return nil, err
	case limit.HoldsLeases():
		return nil, errors.New("conc counts calls in flight, and Envoy does not say when a call ends")
	case limit.Shadow:
		return nil, errors.New("shadow: write shadow_mode: true at the descriptor")
	case l.Requests == 0:
		return nil, nil
	}
	return &limit, nil
}

// readMetadata returns nil where there is none.
func readMetadata(fields map[string]any) (*Metadata, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	plain := plainMap(fields)
	if _, err := message.AppendStruct(nil, plain); err != nil {
		return nil, err
	}
	return &Metadata{plain}, nil
}

// plain turns what YAML has read into values as JSON has them.
func plain(value any) any {
	switch v := value.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[fmt.Sprint(key)] = plain(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = plain(inner)
		}
		return out
	}
	return value
}

func plainMap(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		out[key] = plain(value)
	}
	return out
}
