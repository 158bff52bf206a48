package guard

import (
	"net/http"
	"testing"
)

// A browser without a token must ask by an address.
func TestIsAddress(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1": true, "127.0.0.1:8080": true, "[::1]": true, "[::1]:8080": true,
		"10.1.2.3:1": true, "": false, "celld": false, "evil.example:8080": false, "127.0.0.1.evil.example": false,
		"localhost.evil.example": false, "[::1].evil": false, "localhost.": false,
	} {
		if isAddress(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

// A door without a token that is asked by any name, as in a cluster, knows pages by what browsers send with POST. Package web tests all
// else.
func TestAnyName(t *testing.T) {
	for name, of := range map[string]struct {
		header http.Header
		why    string
	}{
		"a program":        {http.Header{"Accept": {"*/*"}}, ""},
		"another page":     {http.Header{"Origin": {"https://evil.example"}}, AnotherSite},
		"a rebound page":   {http.Header{"Origin": {"http://celld.example:8080"}}, AnotherSite},
		"a browser":        {http.Header{"Sec-Fetch-Site": {"cross-site"}}, AnotherSite},
		"an address's":     {http.Header{"Origin": {"http://10.0.0.1:8080"}}, AnotherSite},
		"a proxy's client": {http.Header{"Origin": {"https://shop.example"}, "X-Forwarded-For": {"192.0.2.1"}}, ""},
	} {
		r := &http.Request{Host: "celld.example:8080", Header: of.header}
		if got := (Guard{AnyName: true}).Program(r); (got == "") != (of.why == "") || len(got) < len(of.why) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
