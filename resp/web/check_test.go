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

// An IPv6 address counts as its net, wherever it comes from. IPv4 in IPv6 is IPv4. What is no address is the key as it is.
func TestKeysOfAddresses(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, test := range []struct {
		path, value, want string
		bits              int64
	}{
		{"x-real-ip", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", 0},
		{"x-real-ip", "2001:DB8:1:2:0:0:0:5", "2001:db8:1:2::/64", 0},
		{"x-real-ip", "2001:db8:1:2::5", "2001:db8:1::/48", 48},
		{"x-real-ip", "2001:db8:1:2::5", "2000::/5", 5},
		{"x-real-ip", "2001:DB8:1:2::5", "2001:db8:1:2::5", 128},
		{"x-real-ip", "2001:db8:1:2::5%eth0", "2001:db8:1:2::/64", 0},
		{"x-real-ip", "fe80::1%eth0", "fe80::1", 128},
		{"x-real-ip", "::1", "::/64", 0},
		{"x-real-ip", "[::1]", "::/64", 0},
		{"x-real-ip", "[2001:db8:1:2::5]:443", "2001:db8:1:2::/64", 0},
		{"x-real-ip", "::ffff:192.0.2.1", "192.0.2.1", 0},
		{"x-real-ip", "::FFFF:c000:201", "192.0.2.1", 128},
		{"x-real-ip", "[::ffff:192.0.2.1]", "192.0.2.1", 0},
		{"x-real-ip", "192.0.2.1", "192.0.2.1", 0},
		{"x-real-ip", "192.0.2.1:80", "192.0.2.1:80", 0},
		{"x-real-ip", "[192.0.2.1]", "[192.0.2.1]", 0},
		{"x-real-ip", "[::1", "[::1", 0},
		{"x-real-ip", "[::1]x", "[::1]x", 0},
		{"x-real-ip", "[::1]:x", "[::1]:x", 0},
		{"x-real-ip", "[]", "[]", 0},
		{"x-real-ip", "2001:db8::1, 192.0.2.1", "2001:db8::1, 192.0.2.1", 0},
		{"x-real-ip", "2001:db8::/64", "2001:db8::/64", 0},
		{"x-real-ip", "alice", "alice", 0},
		{"x-user/x-real-ip", "2001:db8:1:2::5", "/5/alice/17/2001:db8:1:2::/64", 0},
		{"client-address", "2001:db8:1:2::5", "2001:db8:1:2::/64", 0},
		{"client-address", "1.1.1.1, [2001:db8:1:2::5]:4711", "2001:db8:1:2::/64", 0},
		{"client-address/word:::1", "::ffff:192.0.2.1", "/9/192.0.2.1/3/::1", 0},
		{"word:2001:db8::1", "", "2001:db8::1", 0},
		{"host", "", "[::1]:8080", 0},
	} {
		q, err := parseQuestion("api/by/" + test.path)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{RemoteAddr: "10.0.0.1:1", Host: "[::1]:8080",
			Header: http.Header{"X-Forwarded-For": {test.value}, "X-Real-Ip": {test.value}, "X-User": {"alice"}}}
		s := &site{limits: Options{TrustedProxies: trusted, IPv6Prefix: test.bits}}
		if got, _, err := s.keyOf(r, q.sources); got != test.want || err != nil {
			t.Errorf("%s of %s, %d: %q, %v; want %q", test.path, test.value, test.bits, got, err, test.want)
		}
	}
}

// Rules see whole addresses, and each of several sources.
func TestRulesSeeAddresses(t *testing.T) {
	for _, test := range []struct {
		rule, net, path, value string
		allow, deny            bool // whether it holds
	}{
		{"2001:db8:1:2::5", "", "x-real-ip", "2001:db8:1:2::5", true, true},
		{"2001:db8:1:2::5", "", "x-real-ip", "2001:DB8:1:2:0::5", true, true},
		{"2001:db8:1:2::5", "", "x-real-ip", "[2001:db8:1:2::5]:1", true, true},
		{"2001:DB8:1:2::5", "", "x-real-ip", "2001:DB8:1:2::5", true, true}, // as it came
		{"2001:db8:1:2::5", "", "x-real-ip", "2001:db8:1:2::6", false, false},
		{"2001:db8:1:2::5", "", "word:login/x-real-ip", "2001:db8:1:2::5", true, true},
		{"/5/login/15/2001:db8:1:2::5", "", "word:login/x-real-ip", "2001:db8:1:2::5", true, true},
		{"/5/login/17/2001:db8:1:2::/64", "", "word:login/x-real-ip", "2001:db8:1:2::5", true, true},
		{"10.1.2.5", "", "x-real-ip", "10.1.2.5", true, true},
		{"10.1.2.5", "", "word:login/x-real-ip", "10.1.2.5", true, true},
		{"", "10.0.0.0/8", "word:login/x-real-ip", "10.1.2.5", true, true},
		{"", "10.0.0.0/8", "word:login/x-real-ip", "::ffff:10.1.2.5", true, true},
		{"", "10.0.0.0/8", "word:login/x-real-ip", "junk", false, false},
		{"", "2001:db8::/32", "x-real-ip", "2001:db8:1:2::5", true, true},
		{"", "2001:db8:1:2::5/128", "x-real-ip/word:login", "2001:db8:1:2::5", true, true},
		{"", "2001:db8:1:2::5/128", "x-real-ip/word:login", "2001:db8:1:2::6", false, false},
		{"", "10.0.0.0/8", "x-real-ip/x-user", "10.1.2.5", false, true}, // x-user is another address, which a client may have written
		{"", "10.0.0.0/8", "word:10.1.2.5/word:x", "10.1.2.5", false, false},
	} {
		for _, deny := range []bool{false, true} {
			s := newTestSite(t, Options{})
			rule := policy.Rule{Deny: deny, Pattern: test.rule}
			if test.net != "" {
				rule.Net = netip.MustParsePrefix(test.net)
			}
			if _, err := s.server.Door.Store.PutRule(rule, 0); err != nil {
				t.Fatal(err)
			}
			holds := test.allow
			if deny {
				holds = test.deny
			}
			for n := range 3 { // of 2
				want := 200
				if holds && deny || !holds && n == 2 {
					want = 429
				}
				w := ask(t, s, "GET /check/api/by/"+test.path+" HTTP/1.1\n"+here+"\nX-Real-IP: "+test.value+"\nX-User: 192.0.2.1")
				if w.Code != want {
					t.Errorf("%+v, deny %v: %s", test, deny, answer(w))
				}
			}
		}
	}
}

// untilFull is what changes while a test runs.
var untilFull = regexp.MustCompile(`;t=\d+`)

// In a path stand what a call costs, and whether it takes, looks or gives back.
func TestCostLookAndGive(t *testing.T) {
	s := newTestSite(t, Options{})
	for name, text := range map[string]string{"two": "10/1h 100/1d", "llm": "10/1h 100/1h,name=tokens"} {
		limits, err := policy.ParseLimits(text)
		if err == nil {
			_, err = s.server.Door.Store.SetPolicy(name, limits, policy.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
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
		{"check/llm/cost/7/of/tokens/by/word:k", 200, `"llm 10/1h";r=9, "llm 100/1h,name=tokens";r=93`},
		{"look/llm/cost/94/of/tokens/by/word:k", 429, `"llm 10/1h";r=9, "llm 100/1h,name=tokens";r=93`},
		{"check/llm/cost/3/of/tokens/deny/403/cost/2/by/word:k", 200, `"llm 10/1h";r=7, "llm 100/1h,name=tokens";r=90`},
		{"check/llm/cost/0/of/tokens/by/word:k", 200, `"llm 10/1h";r=6, "llm 100/1h,name=tokens";r=90`},
		{"give/llm/cost/4/of/tokens/by/word:k", 200, "4"},
		{"look/llm/by/word:k", 200, `"llm 10/1h";r=6, "llm 100/1h,name=tokens";r=94`},
		{"give/llm/cost/4/of/tokens/cost/1/by/word:k", 404, ""},
		{"check/llm/cost/4/of/toks/by/word:k", 400, ""},
		{"give/llm/cost/4/of/toks/by/word:k", 400, ""},
		{"check/llm/cost/4/of/a%20b/by/word:k", 400, ""},
		{"check/llm/cost/4/of/tokens/cost/5/of/tokens/by/word:k", 400, ""},
		{"check/llm/cost/4/cost/5/by/word:k", 404, ""},
		{"look/llm/by/word:k", 200, `"llm 10/1h";r=6, "llm 100/1h,name=tokens";r=94`},
		{"check/llm/cost/2/cost/5/of/tokens/by/word:k", 200, `"llm 10/1h";r=4, "llm 100/1h,name=tokens";r=89`},
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
