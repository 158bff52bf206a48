package domains

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"celld/resp/envoy/message"
)

// parse reads files: each is the text of a.yaml, b.yaml and so on.
func parse(o Options, texts ...string) (*Set, error) {
	var files []File
	for i, text := range texts {
		files = append(files, File{string(rune('a'+i)) + ".yaml", []byte(text)})
	}
	return Parse(files, o)
}

func mustParse(t testing.TB, texts ...string) *Set {
	t.Helper()
	set, err := parse(Options{Merge: true}, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// one is a domain of one descriptor, with more in its lines.
func one(more ...string) string {
	return "domain: d\ndescriptors:\n- key: k\n  " + strings.Join(more, "\n  ") + "\n"
}

func TestParseErrors(t *testing.T) {
	for _, of := range []struct{ text, want string }{
		{"", "expected a domain, such as domain: shop"},
		{"domain: ''", "expected a domain, such as domain: shop"},
		{"descriptors: []", "expected a domain, such as domain: shop"},
		{"domain: [", "yaml: line 1: did not find expected node content"},
		{"\tdomain: d", "yaml: found character that cannot start any token"},
		{"- domain: d", "yaml: unmarshal errors: line 1: cannot unmarshal !!seq into map[interface {}]interface {}"},
		{"domain: d\nDomain: d", "unknown key 'Domain'"},
		{"domain: d\n5: x", "the key 5 is no text"},
		{"domain: d\n~: x", "the key <nil> is no text"},
		{"domain: d\ndescriptors: 5", "yaml: unmarshal errors: line 2: cannot unmarshal !!int `5` into []domains.yamlDescriptor"},
		{"domain: d\ndescriptors: [5]", "descriptors: expected a list of maps, not of 5"},
		{"domain: d\ndescriptors: [{}]", "a descriptor below d has no key"},
		{"domain: d\ndescriptors: [{key: a, descriptors: [{value: b}]}]", "a descriptor below d.a has no key"},
		{"domain: d\ndescriptors: [{key: a}, {key: a}]", "d.a stands twice (key and value are joined by _)"},
		{"domain: d\ndescriptors: [{key: a, value: b_c}, {key: a_b, value: c}]", "d.a_b_c stands twice (key and value are joined by _)"},
		{one("limit: {}"), "unknown key 'limit'"},
		{one("value: 1.5"), `value: expected a text or an integer; write "1.5" in quotes`},
		{one("value: 18446744073709551615"), `value: expected a text or an integer; write "18446744073709551615" in quotes`},
		{one("value: [a]"), "value: expected a list of maps, not of a"},
		{one("value: {key: a}"), "yaml: unmarshal errors: line 4: cannot unmarshal !!map into string"},
		{one("shadow_mode: 1"), "yaml: unmarshal errors: line 4: cannot unmarshal !!int `1` into bool"},
		{one("share_threshold: true"), "d.k: share_threshold is for a value with *"},
		{one("metadata: x"), "yaml: unmarshal errors: line 4: cannot unmarshal !!str `x` into map[string]interface {}"},
		{one(`metadata: {a: !!binary "//79"}`), "d.k: metadata: invalid UTF-8 in string: \"\\xff\\xfe\\xfd\""},
		{one("rate_limit: {}"), "d.k: unit '': expected second, minute, hour, day, week, month or year"},
		{one("rate_limit: {unit: unknown}"), "d.k: unit 'unknown': expected second, minute, hour, day, week, month or year"},
		{one("rate_limit: {unit: minutes}"), "d.k: unit 'minutes': expected second, minute, hour, day, week, month or year"},
		{one("rate_limit: {unit: day, requests_per_unit: -1}"), "yaml: unmarshal errors: line 4: cannot unmarshal !!int `-1` into uint32"},
		{one("rate_limit: {unit: day, requests_per_unit: 4294967296}"),
			"yaml: unmarshal errors: line 4: cannot unmarshal !!int `4294967296` into uint32"},
		{one("rate_limit: {unit: day, requests_per_unit: 1.5}"), `requests_per_unit: expected a text or an integer; write "1.5" in quotes`},
		{one("rate_limit: {unlimited: true, unit: day}"), "d.k: unlimited has no unit"},
		{one("rate_limit: {unlimited: true, algorithm: slide}"), "d.k: unlimited has no algorithm"},
		{one("rate_limit: {unit: day, name: n, replaces: [{name: n}]}"), "d.k: a limit cannot replace itself"},
		{one("rate_limit: {unit: day, replaces: [{}]}"), "d.k: replaces: expected a name"},
		{one("rate_limit: {unit: day, replaces: [x]}"), "replaces: expected a list of maps, not of x"},
		{one("rate_limit: {algorithm: '@'}"), "d.k: algorithm: expected the name of a policy behind @"},
		{one("rate_limit: {algorithm: '@p', unit: day}"), "d.k: the policy @p has limits of its own: leave out unit and requests_per_unit"},
		{one("rate_limit: {algorithm: '@p', requests_per_unit: 0}"),
			"d.k: the policy @p has limits of its own: leave out unit and requests_per_unit"},
		{one("rate_limit: {unit: day, requests_per_unit: 5, algorithm: conc}"),
			"d.k: algorithm: conc counts calls in flight, and Envoy does not say when a call ends"},
		{one("rate_limit: {unit: day, requests_per_unit: 5, algorithm: 'gcra,shadow'}"),
			"d.k: algorithm: shadow: write shadow_mode: true at the descriptor"},
	} {
		_, err := parse(Options{}, of.text)
		if err == nil || err.Error() != "a.yaml: "+of.want {
			t.Errorf("%s\n got %v\nwant %s", of.text, err, of.want)
		}
	}
	for _, algorithm := range []string{"x", "gcra,burst=0", "slide,algo=log", ",", "gcra,"} {
		_, err := parse(Options{}, one("rate_limit: {unit: day, requests_per_unit: 0, algorithm: '"+algorithm+"'}"))
		if err == nil || !strings.HasPrefix(err.Error(), "a.yaml: d.k: algorithm: ") {
			t.Errorf("the algorithm %s is %v", algorithm, err)
		}
	}
}

func TestParseTellsAllErrors(t *testing.T) {
	texts := []string{
		"domain: d\ndescriptors:\n- {}\n- key: k\n  share_threshold: true\n  rate_limit: {unit: x}\n  descriptors: [{}]\n- key: k\n",
		"z: 1\na: 1\ndomain: 1.5\n",
		"domain: d",
		"domain: e",
	}
	const want = `a.yaml: a descriptor below d has no key
a.yaml: d.k: share_threshold is for a value with *
a.yaml: d.k: unit 'x': expected second, minute, hour, day, week, month or year
a.yaml: a descriptor below d.k has no key
a.yaml: d.k stands twice (key and value are joined by _)
b.yaml: unknown key 'a'
b.yaml: domain: expected a text or an integer; write "1.5" in quotes
b.yaml: unknown key 'z'
c.yaml: the domain 'd' stands twice`
	for range 5 { // in one order
		set, err := parse(Options{}, texts...)
		if set != nil || err == nil || err.Error() != want {
			t.Fatalf("got %v, %v", set, err)
		}
	}
	_, err := Parse([]File{{Name: "100%d.yaml"}}, Options{})
	if want := "100%d.yaml: expected a domain, such as domain: shop"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestParseAcceptsWhatTheReferenceDoes reads files that look wrong, and that envoyproxy/ratelimit f2fb157 reads. Somebody uses them.
func TestParseAcceptsWhatTheReferenceDoes(t *testing.T) {
	for text, want := range map[string]*message.Limit{
		"domain: d": nil,
		"domain: d\nunit: x\nkey: y\nmetadata: [5]\nname: {key: {unit: 7}}\n":                   nil,
		one("unit: minute", "rate_limit: {unit: day, requests_per_unit: 1, domain: x}"):         {Requests: 1, Unit: message.Day},
		one("rate_limit: {unit: DaY, unit: hour}"):                                              {Unit: message.Hour},
		one("rate_limit: {unit: day}", "rate_limit: {unit: year}"):                              {Unit: message.Year},
		one("rate_limit: {unit: week, requests_per_unit: 010}"):                                 {Requests: 8, Unit: message.Week},
		one("rate_limit: {unit: month, requests_per_unit: 0x1_0, name: 5}"):                     {Requests: 16, Unit: message.Month, Name: "5"},
		one("rate_limit: {unit: day, requests_per_unit: 4294967295}"):                           {Requests: 1<<32 - 1, Unit: message.Day},
		one("rate_limit: {unit: second, requests_per_unit: ~}"):                                 {Unit: message.Second},
		one("rate_limit: {unlimited: yes, unit: fortnight, requests_per_unit: 3}"):              {Requests: 3},
		one("rate_limit: {unlimited: on, unit: unknown}"):                                       {},
		one("rate_limit: ~", "descriptors: ~", "value: ~", "metadata: ~"):                       nil,
		one("rate_limit: {unit: day, replaces: [{name: a}, {name: a, key: b}]}"):                {Unit: message.Day},
		one("rate_limit: {unit: day}") + "---\ndomain: [not, read\n":                            {Unit: message.Day},
		one("rate_limit: {unit: day}") + "...\n\t":                                              {Unit: message.Day},
		"%YAML 1.1\n--- # comment\n" + one("rate_limit: &l {unit: day}", "metadata: *l"):        {Unit: message.Day},
		one("rate_limit: {<<: {unit: day, requests_per_unit: 1}, requests_per_unit: 2}"):        {Requests: 2, Unit: message.Day},
		"\ufeff" + one("rate_limit: {unit: day}"):                                               {Unit: message.Day},
		`{"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unit": "day"}}]}`:         {Unit: message.Day},
		one("descriptors: []", "shadow_mode: no", "quota_mode: off", "rate_limit: {unit: day}"): {Unit: message.Day},
	} {
		set, err := parse(Options{}, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		m, ok := set.Find("d", []message.Entry{{Key: "k"}})
		if ok != (want != nil) || ok && m.Limit.Limit != *want {
			t.Errorf("%s: got %+v, want %+v", text, m.Limit, want)
		}
	}
}

// TestParseText: texts stay as they stand there, whatever YAML 1.1 makes of them elsewhere.
func TestParseText(t *testing.T) {
	for text, want := range map[string]string{
		"yes": "yes", "010": "010", "0x10": "0x10", "'1.0'": "1.0", "true": "true", "2001-01-01": "2001-01-01", "12:30:45": "12:30:45",
		"!!binary aGk=": "hi", "|\n    a\n    b": "a\nb\n", "\"\\u00e9\"": "é", "-5": "-5",
	} {
		set, err := parse(Options{}, one("value: "+text, "rate_limit: {unit: day}"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, ok := set.Find("d", []message.Entry{{Key: "k", Value: want}}); !ok {
			t.Errorf("the value %s is not %q", text, want)
		}
	}
}

func TestParseMetadata(t *testing.T) {
	set := mustParse(t, one("rate_limit: {unit: day}",
		"metadata: {1: yes, t: 'yes', f: 1.5, n: ~, l: [010, {2: x, 3: {}}], m: {y: {n: 1}}}"))
	m, ok := set.Find("d", []message.Entry{{Key: "k"}})
	want := map[string]any{"1": true, "t": "yes", "f": 1.5, "n": nil, "l": []any{8, map[string]any{"2": "x", "3": map[string]any{}}},
		"m": map[string]any{"true": map[string]any{"false": 1}}}
	if !ok || !reflect.DeepEqual(m.Metadata.Fields, want) {
		t.Errorf("got %#v", m.Metadata)
	}
}

func TestParseLimit(t *testing.T) {
	set := mustParse(t, "domain: d\ndescriptors:\n"+`
- {key: a, shadow_mode: true, quota_mode: yes, rate_limit: {unit: day, requests_per_unit: 5, name: n, replaces: [{name: x}, {name: y}]}}
- {key: b, rate_limit: {unit: hour, requests_per_unit: 5, algorithm: "gcra,burst=7"}}
- {key: c, rate_limit: {unit: minute, requests_per_unit: 0, algorithm: slide}}
- {key: d, rate_limit: {algorithm: "@gold", name: n}}
- {key: e, rate_limit: {unlimited: true, name: n}}
- {key: f}`)
	for key, want := range map[string]string{
		"a": "{5 DAY n} shadow quota [x y]", "b": "{5 HOUR } gcra,burst=7 5/1h,burst=7", "c": "{0 MINUTE } slide",
		"d": "{0 UNKNOWN n} @gold =gold", "e": "{0 UNKNOWN n} unlimited", "f": "none",
	} {
		m, ok := set.Find("d", []message.Entry{{Key: key}})
		got := "none"
		if ok {
			got = fmt.Sprint(m.Limit.Limit)
			if m.Unlimited {
				got += " unlimited"
			}
			if m.Shadow {
				got += " shadow"
			}
			if m.Quota {
				got += " quota"
			}
			if m.Algorithm != "" {
				got += " " + m.Algorithm
			}
			if m.Policy != "" {
				got += " =" + m.Policy
			}
			if m.Decides != nil {
				got += " " + m.Decides.String()
			}
			if m.Replaces != nil {
				got += " " + fmt.Sprint(m.Replaces)
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
	if set.Len() != 1 || set.Limits() != 5 || !set.Has("d") || set.Has("") {
		t.Errorf("%d domains, %d limits", set.Len(), set.Limits())
	}
	var none *Set
	if _, ok := none.Find("d", []message.Entry{{Key: "a"}}); ok || none.Has("d") || none.Len() != 0 {
		t.Error("no set has a domain")
	}
}

func TestMerge(t *testing.T) {
	a := "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day}}\n- {key: x, value: '*', rate_limit: {unit: day}}\n"
	b := "domain: d\ndescriptors:\n- {key: b, rate_limit: {unit: hour}}\n- {key: x, value: 'y*', rate_limit: {unit: hour}}\n"
	set := mustParse(t, a, "domain: e", b)
	// For x it is that of the first pattern that matches.
	for key, want := range map[string]message.Unit{"a": message.Day, "b": message.Hour, "x": message.Day} {
		if m, ok := set.Find("d", []message.Entry{{Key: key, Value: "y"}}); !ok || m.Unit != want {
			t.Errorf("%s: got %+v", key, m.Limit)
		}
	}
	_, err := parse(Options{Merge: true}, a, b, a)
	const want = "c.yaml: d.a stands twice (key and value are joined by _)\nc.yaml: d.x_* stands twice (key and value are joined by _)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("domain: d\ndescriptors:\n- key: k\n  value: x*\n  share_threshold: true\n  value_to_metric: true\n"+
		"  metadata: {a: [1, {b: ~}]}\n"+
		"  rate_limit: &l {unit: day, requests_per_unit: 5, algorithm: 'gcra,burst=3'}\n  descriptors:\n  - {key: j, rate_limit: *l}\n",
		"k", "xyz")
	f.Add("domain: d\ndescriptors: [{key: k, detailed_metric: on, rate_limit: {unlimited: true, replaces: [{name: a}]}}]", "k", "")
	f.Add("{domain: \"d\", <<: {descriptors: [{key: '*', rate_limit: {algorithm: '@p'}}]}}", "*", "1.2.3.4:|")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		set, err := parse(Options{}, text)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "a.yaml: ") {
					t.Errorf("a line of an error: %q", line)
				}
			}
			return
		}
		if set.Len() != 1 {
			t.Errorf("%d domains in a file", set.Len())
		}
		e := message.Entry{Key: key, Value: value}
		for domain := range set.domains {
			for _, entries := range [][]message.Entry{nil, {e}, {e, e}, {e, {}}, {{}, e, e}} {
				m, ok := set.Find(domain, entries)
				if !ok {
					continue
				}
				if m.Shared != nil && len(m.Shared) != len(entries) {
					t.Errorf("%q is shared among %d entries", m.Shared, len(entries))
				}
				for _, label := range []string{m.Series.Domain, m.Series.Key1, m.Series.Key2} {
					if len(label) > mostLabel {
						t.Errorf("a label has %d bytes", len(label))
					}
				}
			}
		}
	})
}

// What envoyproxy/ratelimit takes in silence is warned of: the last of two equal keys counts, and only the first document.
func TestWarnings(t *testing.T) {
	const limit = "{unit: minute, requests_per_unit: 1}"
	for text, want := range map[string]string{
		"domain: d\ndescriptors:\n- key: a\n  rate_limit: " + limit: "",
		"domain: d\n---\n# nothing\n":                               "",
		"domain: d\n---\ndomain: e\n":                               "a.yaml: what stands behind --- is a second document, which does not count",
		"domain: d\n---\n[":                                         "a.yaml: what stands behind --- is a second document, which does not count",
		"domain: x\ndomain: d\ndescriptors:\n- key: a\n  key: b\n  rate_limit: " + limit: "" +
			`a.yaml: line 2: key "domain" already set in map: the last one counts` + "\n" +
			`a.yaml: line 5: key "key" already set in map: the last one counts`,
	} {
		set, err := Parse([]File{{Name: "a.yaml", Text: []byte(text)}}, Options{})
		if err != nil || !set.Has("d") {
			t.Errorf("%q: %v", text, err)
		} else if got := strings.Join(set.Warnings(), "\n"); got != want {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
	}
	twice := "domain: d\ndescriptors: [{key: a, key: b, rate_limit: " + limit + "}]"
	set, err := Parse([]File{{Name: "a.yaml", Text: []byte(twice)}}, Options{})
	if _, found := set.Find("d", []message.Entry{{Key: "b"}}); err != nil || !found {
		t.Errorf("the last one does not count: %v", err)
	}
}
