package domains

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/envoy/message"
)

// entriesOf reads key=value,key=value.
func entriesOf(text string) (entries []message.Entry) {
	for _, one := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(one, "=")
		entries = append(entries, message.Entry{Key: key, Value: value})
	}
	return entries
}

func TestFind(t *testing.T) {
	set := mustParse(t, `
domain: d
descriptors:
- {key: k, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: k, value: "a*z", rate_limit: {unit: day, requests_per_unit: 2}}
- {key: k, value: "ab*", rate_limit: {unit: day, requests_per_unit: 3}}
- {key: k, value: abz, rate_limit: {unit: day, requests_per_unit: 4}}
- {key: k, value: "*-*-", rate_limit: {unit: day, requests_per_unit: 5}}
- {key: k_l, value: m, rate_limit: {unit: day, requests_per_unit: 6}}
- key: deep
  rate_limit: {unit: day, requests_per_unit: 7}
  descriptors:
  - {key: "", value: x, key: k, rate_limit: {unit: day, requests_per_unit: 8}}
  - {key: k, descriptors: [{key: l, rate_limit: {unit: day, requests_per_unit: 9}}]}
- key: deep
  value: "x*"
  descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 10}}]
- {key: none}
- {key: p*, rate_limit: {unit: day, requests_per_unit: 11}}
- {key: "*q", rate_limit: {unit: day, requests_per_unit: 12}}
- {key: w, value: "**", rate_limit: {unit: day, requests_per_unit: 13}}
`)
	for text, want := range map[string]int{
		"k=": 1, "k=b": 1, "k=az": 2, "k=a": 1, "k=abzz": 2, "k=aby": 3, "k=abz": 4, "k=ab": 3, "k=--": 5, "k=a-b-": 5, "k=-": 1,
		"k_l=m": 6, "k=l_m": 6, "k_l=": 0, "k=A": 1,
		"deep=": 7, "deep=z": 7, "deep=,k=x": 8, "deep=,k=y": 0, "deep=,k=y,l=": 9, "deep=,k=x,l=": 0,
		"deep=x": 0, "deep=xy,k=x": 10, "deep=xy,k=y,l=": 0, "deep=,deep=": 0, // the pattern is taken, although it leads nowhere
		"none=": 0, "none=,k=": 0, "other=": 0, "=": 0, "K=": 0,
		"p=": 11, "pq=x": 11, "xq=": 0, "x=q": 12, "*q=x": 12, "*q=q": 12, "w=": 13, "w=*": 13, "w=x": 13,
	} {
		m, ok := set.Find("d", entriesOf(text))
		if ok != (want != 0) || ok && int(m.Requests) != want {
			t.Errorf("%s finds %+v, want %d", text, m.Limit, want)
		}
	}
	for _, entries := range [][]message.Entry{nil, {}} {
		if m, ok := set.Find("d", entries); ok {
			t.Errorf("no entries find %+v", m.Limit)
		}
	}
	if m, ok := set.Find("D", entriesOf("k=")); ok {
		t.Errorf("another domain finds %+v", m.Limit)
	}
}

func TestSharedValues(t *testing.T) {
	set := mustParse(t, `
domain: d
descriptors:
- {key: k, value: "a*", share_threshold: true, rate_limit: {unit: day}}
- {key: k, value: "b*", rate_limit: {unit: day}}
- {key: k, value: "ab", rate_limit: {unit: day}}
- key: k
  value: "c*"
  share_threshold: true
  descriptors:
  - {key: l, rate_limit: {unit: day}}
  - {key: l, value: "*.png", share_threshold: true, rate_limit: {unit: day}}
- {key: "*q", share_threshold: true, rate_limit: {unit: day}}
- {key: "p*", share_threshold: true, rate_limit: {unit: day}}
`)
	for text, want := range map[string][]string{
		"k=a": {"a*"}, "k=axx": {"a*"}, "k=a*": nil, "k=b": nil, "k=ab": nil,
		"k=c1,l=": {"c*", ""}, "k=c1,l=x.png": {"c*", "*.png"},
		"x=q":  {"*q"},
		"*q=x": nil, // by the bare key
		"p=x":  {"p*"},
		"p*=x": {"p*"},
	} {
		m, ok := set.Find("d", entriesOf(text))
		if !ok || fmt.Sprintf("%q", m.Shared) != fmt.Sprintf("%q", want) {
			t.Errorf("%s shares %q, want %q", text, m.Shared, want)
		}
	}
}

func TestSeries(t *testing.T) {
	set := mustParse(t, `
domain: "d:1"
descriptors:
- {key: plain, rate_limit: {unit: day}}
- {key: plain, value: x, rate_limit: {unit: day}}
- {key: plain, value: "y*", rate_limit: {unit: day}}
- {key: valued, value_to_metric: true, rate_limit: {unit: day}}
- {key: valued, value: "z*", value_to_metric: true, rate_limit: {unit: day}}
- {key: shared, value: "z*", value_to_metric: true, share_threshold: true, rate_limit: {unit: day}}
- {key: detailed, detailed_metric: true, rate_limit: {unit: day}}
- key: deep
  descriptors:
  - key: l
    descriptors: [{key: m, value_to_metric: true, rate_limit: {unit: day}}, {key: n, detailed_metric: true, rate_limit: {unit: day}}]
- key: first
  value_to_metric: true
  descriptors: [{key: l, rate_limit: {unit: day}}]
- key: pattern
  value: "*"
  share_threshold: true
  descriptors: [{key: l, detailed_metric: true, rate_limit: {unit: day}}]
`)
	for text, want := range map[string]string{
		"plain=": "plain", "plain=z": "plain", "plain=x": "plain_x", "plain=yy": "plain_y*",
		"valued=": "valued", "valued=a": "valued_a", "valued=zz": "valued_zz", "valued=1.2.3.4:80|x": "valued_1_2_3_4_80_x",
		"shared=zz": "shared_z*", "detailed=": "detailed_", "detailed=q": "detailed_q",
		"deep=1,l=2,m=3": "deep l", "deep=1,l=2,n=3": "deep_1 l_2", "first=1,l=2": "first_1 l",
		"pattern=1,l=2": "pattern_* l_2", "pattern=1,l=": "pattern_* l",
		"valued=" + strings.Repeat("é", 100): "valued_" + strings.Repeat("é", 60), // up to 128 bytes, and no half of a letter
	} {
		m, ok := set.Find("d:1", entriesOf(text))
		keys := strings.TrimSpace(m.Series.Key1 + " " + m.Series.Key2)
		if !ok || m.Series.Domain != "d_1" || keys != want {
			t.Errorf("%s counts in %q, want %s", text, m.Series, want)
		}
	}
	for text, want := range map[string]Series{
		"a=b": {"d", "a_b", ""}, "a=,b=c,d=e": {"d", "a", "b_c"}, "a|=10.0.0.1": {"d", "a__10_0_0_1", ""},
	} {
		if got := SeriesOf("d", entriesOf(text)); got != want {
			t.Errorf("a limit that %s brings along counts in %q, want %q", text, got, want)
		}
	}
	if got := SeriesOf("d", nil); got != (Series{Domain: "d"}) {
		t.Errorf("no entries count in %q", got)
	}
}

func TestMatches(t *testing.T) {
	for _, of := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "x", true}, {"a*", "a", true}, {"a*", "b", false}, {"*a", "ba", true},
		{"a*a", "a", false}, {"a*a", "aa", true},
		{"ab*ba", "aba", false}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"a*b*c", "a.b.b.c", true}, {"a*bc*c", "abc", false},
		{"a**b", "ab", true}, {"*a*a*", "a", false}, {"*a*a*", "aa", true}, {"*ab*bc*", "abc", false},
	} {
		if got := matches(strings.Split(of.pattern, "*"), of.text); got != of.want {
			t.Errorf("%s matches %s: %v", of.pattern, of.text, got)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	set := mustParse(b, "domain: d\ndescriptors: [{key: k, descriptors: [{key: l, rate_limit: {unit: day}}]}]")
	entries := entriesOf("k=a,l=b")
	for b.Loop() {
		if _, ok := set.Find("d", entries); !ok {
			b.Fatal("not found")
		}
	}
}
