package web

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"celld/store/policy"
)

// No two lists of parts make one key.
func FuzzJoinKey(f *testing.F) {
	f.Add("a", "b", "a/b", "", uint8(2), uint8(1))
	f.Add("/1/a", "b", "/1/a/1/b", "x", uint8(2), uint8(1))
	f.Add("a/1/b", "c", "a", "b/1/c", uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, a, b, c, d string, m, n uint8) {
		if a == "" || b == "" || c == "" || d == "" {
			return
		}
		one, two := []string{a, b}[:1+m%2], []string{c, d}[:1+n%2]
		same := len(one) == len(two) && one[0] == two[0] && (len(one) == 1 || one[1] == two[1])
		if (joinKey(one) == joinKey(two)) != same {
			t.Errorf("%q and %q are %q and %q", one, two, joinKey(one), joinKey(two))
		}
	})
}

func TestJoinKey(t *testing.T) {
	for want, parts := range map[string][]string{
		"192.0.2.1":            {"192.0.2.1"},
		"2001:db8::1":          {"2001:db8::1"},
		"/2//x":                {"/x"},
		"/5/alice/9/192.0.2.1": {"alice", "192.0.2.1"},
		"/1/a/1/b/1/c":         {"a", "b", "c"},
	} {
		if joinKey(parts) != want {
			t.Errorf("%q: %q, want %q", parts, joinKey(parts), want)
		}
	}
}

// A path is a question or an error in one line, and what it asks is as it stands there.
func FuzzQuestion(f *testing.F) {
	for _, path := range []string{
		"api/by/x-real-ip", "api/deny/403/x/by/client-address/word:a%2Fb", "deny/by/by", "x/x/by/x", "a%zz/by/x", "/by/x", "//by/x",
		"a/deny/404/by/x", "a/by/x/", "a/by/word:", "a/by/é", "a/x/deny/403/by/x", "a/b:c/d/deny/403/x/by/x",
	} {
		f.Add(path, "value")
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		q, err := parseQuestion(path)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: %q", path, err)
			}
			return
		}
		if len(q.policies) == 0 || q.policies[0] == "" || len(q.sources) == 0 || len(q.sources) > mostSources ||
			q.denial != 429 && q.denial != 403 {
			t.Errorf("%q: %+v", path, q)
		}
		r := &http.Request{RemoteAddr: "10.0.0.1:1", Host: "h", Header: http.Header{"X-Forwarded-For": {value}, "X-A": {value}}}
		for _, from := range q.sources {
			part, err := from.read(r, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
			if (err == nil) != (part != "") && err == nil {
				t.Errorf("%q: an empty part", path)
			}
		}
	})
}

func TestQuestion(t *testing.T) {
	for path, ok := range map[string]bool{
		"api/by/x": true, "api/deny/403/by/x": true, "api/x/by/x": true, "api/deny/403/x/by/x": true, "deny/by/x": true, "a%2Fb/by/x": true,
		"a/b/by/x": true, "api/x/deny/403/by/x": true, "api/cost/5/by/x": true, "api/deny/403/cost/0/x/by/x": true, "@cost/by/x": true,
		"api/cost/by/x": false, "api/cost/-1/by/x": false, "api/cost/1.5/by/x": false, "api/cost/9007199254740992/by/x": false,
		"api/cost/1/cost/2/by/x": false, "api/of/by/x": false, "api/x/x/by/x": false, "api/cost/5": false,
		"a/b/deny/403/x/by/x": true, strings.Repeat("a/", 16) + "by/x": true, strings.Repeat("a/", 17) + "by/x": false,
		"api:gold/by/client-address/x": true, "api/by/" + strings.Repeat("x/", 7) + "x": true,
		"api/by/" + strings.Repeat("x/", 8) + "x": false,
		"": false, "api": false, "api/deny": false, "api/deny/403": false, "api/x": false, "api/by": false, "api/by/": false,
		"/by/x": false, "api//by/x": false, "api/by/x/": false, "api/deny/429/by/x": false, "api/on/x": false,
		"api/by/a%20b": false, "api/by/word:": false, "api/by/word:%0a": false, "api/by/a:b": false, "api%/by/x": false,
	} {
		if q, err := parseQuestion(path); (err == nil) != ok {
			t.Errorf("%s: %+v, %v", path, q, err)
		}
	}
}

// The address is the last that no trusted proxy has, whatever a client has put before it.
func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		remote, want string
		forwarded    []string
	}{
		{"192.0.2.1:7", "192.0.2.1", nil},
		{"192.0.2.1:7", "192.0.2.1", []string{"198.51.100.1"}}, // no proxy of ours
		{"10.0.0.1:7", "198.51.100.1", []string{"198.51.100.1"}},
		{"10.0.0.1:7", "198.51.100.1", []string{"1.2.3.4, 198.51.100.1"}},
		{"10.0.0.1:7", "198.51.100.1", []string{"1.2.3.4", "198.51.100.1 ,10.0.0.2"}},
		{"10.0.0.1:7", "198.51.100.1", []string{"forged", "198.51.100.1"}},
		{"10.0.0.1:7", "10.0.0.3", []string{"10.0.0.3, 10.0.0.2"}},
		{"[fd00::1]:7", "2001:db8::1", []string{"2001:db8::1"}},
		{"[::ffff:10.0.0.1]:7", "198.51.100.1", []string{"::ffff:198.51.100.1"}},
		{"10.0.0.1:7", "198.51.100.1", []string{"198.51.100.1:4711"}},
		{"10.0.0.1:7", "2001:db8::1", []string{"[2001:db8::1]:4711"}},
		{"10.0.0.1:7", "fe80::1", []string{"fe80::1%eth0"}},
		{"10.0.0.1:7", "", nil},
		{"10.0.0.1:7", "", []string{""}},
		{"10.0.0.1:7", "", []string{"198.51.100.1,"}},
		{"10.0.0.1:7", "", []string{"198.51.100.1, unknown"}},
	} {
		got, err := clientAddress(&http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-For": test.forwarded}}, trusted)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s, %q: %q, %v; want %q", test.remote, test.forwarded, got, err, test.want)
		}
	}
}

// untilFull is what changes while a test runs.
var untilFull = regexp.MustCompile(`;t=\d+`)

// In a path stand what a call costs, and whether it takes, looks or gives back.
func TestCostLookAndGive(t *testing.T) {
	s := newTestSite(t, Options{})
	limits, err := policy.ParseLimits("10/1h 100/1d")
	if err == nil {
		_, err = s.server.Door.Store.SetPolicy("two", limits, policy.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		path string
		code int
		want string // of RateLimit, or the body
	}{
		{"check/two/cost/7/by/word:k", 200, `"two 10/1h";r=3, "two 100/1d";r=93`},
		{"look/two/cost/4/by/word:k", 429, `"two 10/1h";r=3, "two 100/1d";r=93`},
		{"look/two/cost/3/by/word:k", 200, `"two 10/1h";r=3, "two 100/1d";r=93`},
		{"look/two/deny/403/cost/4/by/word:k", 403, `"two 10/1h";r=3, "two 100/1d";r=93`},
		{"give/@two/cost/2/by/word:k", 200, "2"},
		{"look/two/cost/0/by/word:k", 200, `"two 10/1h";r=5, "two 100/1d";r=95`},
		{"give/two/by/word:k", 200, "1"},
		{"give/two/cost/99/by/word:k", 200, "4"},
		{"give/two/deny/403/by/word:k", 404, ""},
		{"give/none/by/word:k", 404, ""},
		{"check/two/cost/x/by/word:k", 400, ""},
		{"check/two/cost/11/by/word:k", 429, `"two 10/1h";r=10, "two 100/1d";r=100`},
	} {
		w := ask(t, s, "GET /"+step.path+" HTTP/1.1\n"+here)
		got := strings.TrimSpace(w.Body.String())
		if _, limit, described := strings.Cut(answer(w), "\nRateLimit: "); described {
			limit, _, _ = strings.Cut(limit, "\n")
			got = untilFull.ReplaceAllString(limit, "")
		}
		if retry := w.Header().Get("Retry-After"); strings.HasSuffix(step.path, "11/by/word:k") && retry != "" {
			t.Errorf("what never passes is told to retry after %s s", retry)
		}
		if w.Code != step.code || step.want != "" && got != step.want {
			t.Errorf("%s: %s", step.path, answer(w))
		}
	}
}
