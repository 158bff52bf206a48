//go:build all

package envoy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// series is a counter of a limit, or of a domain that is not configured.
type series struct{ kind, domain, key1, key2 string }

var (
	ofLimit   = regexp.MustCompile(`(?m)^ratelimit_service_rate_limit_(\w+)\{domain="([^"]*)",key1="([^"]*)"(?:,key2="([^"]*)")?\} (\S+)$`)
	ofUnknown = regexp.MustCompile(`(?m)^ratelimit_service_rate_limit_(\w+_domain_not_found)()()() (\S+)$`)
)

// seriesIn reads a page. The reference, whose series come by statsd, takes a dot in a key for the end of the key.
func seriesIn(t *testing.T, page string) map[series]int {
	t.Helper()
	all := map[series]int{}
	for _, found := range slices.Concat(ofLimit.FindAllStringSubmatch(page, -1), ofUnknown.FindAllStringSubmatch(page, -1)) {
		n, err := strconv.Atoi(found[5])
		if err != nil {
			t.Fatal(err)
		}
		keys := append(strings.Split(strings.TrimSuffix(found[3]+"."+found[4], "."), "."), "")
		all[series{found[1], found[2], keys[0], keys[1]}] += n
	}
	maps.DeleteFunc(all, func(_ series, n int) bool { return n == 0 })
	return all
}

// last is a domain that sameSeries asks for.
const last = `domain: last
descriptors:
- {key: client, rate_limit: {unit: year, requests_per_unit: 9}}
- {key: quiet, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
`

// TestSameStatistics sends the same requests to envoyproxy/ratelimit and to celld, which then have the same series.
func TestSameStatistics(t *testing.T) {
	t.Parallel()
	// 180 domains must be compared. On a loaded machine 23 of 200 were left at the edge of a second.
	const domains, compared, requests = 250, 180, 2500
	r := &random{Rand: celldtest.NewRand(t), old: newest == ""}
	dir := mkdir(t, t.TempDir(), "config")
	files := map[string]string{}
	for i := range domains {
		name := fmt.Sprintf("d%d", i)
		files[name] = r.config(name)
		celldtest.WriteFile(t, files[name], dir, name+".yaml")
	}
	celldtest.WriteFile(t, last, dir, "last.yaml")
	theirs := startReference(t, dir)
	ours := startOn(t, harness.Spec{Flags: []string{"--envoy-bind", "127.0.0.1:0", "--envoy-config", dir,
		"--envoy-metrics-bind", "127.0.0.1:0"}})
	mine := dial(t, ours.grpc)
	edges := map[string]bool{} // domains of which one may have counted in the next window
	asked := map[string]*ratelimit.RateLimitRequest{}
	for i := range requests {
		domain := fmt.Sprintf("d%d", i%domains)
		if r.one(40) {
			domain = "unknown"
		}
		q := asked[domain]
		if q == nil || r.one(3) {
			q = r.request(domain)
			asked[domain] = q
		}
		awaitMiddle()
		before := time.Now().Unix()
		_, wantErr := ask(theirs.client, q)
		_, gotErr := ask(mine, q)
		if wantErr != nil || gotErr != nil {
			t.Fatalf("%v: %v, %v", q, wantErr, gotErr)
		}
		if time.Now().Unix() != before {
			edges[domain] = true
		}
	}
	sameSeries(t, theirs, ours, mine, edges, func(domain string) string { return files[domain] })
	if domains-len(edges) < compared {
		t.Error("too little was compared")
	}
}

// sameSeries compares the series of all domains but those left out. The domain last must be in force.
func sameSeries(t *testing.T, theirs *reference, ours *served, mine ratelimit.RateLimitServiceClient, leftOut map[string]bool,
	config func(domain string) string) {
	page := func(url string) string {
		_, _, text := harness.Get(ours.Server, url+"/metrics")
		return text
	}
	// When the second of client has arrived, all is there that came before the first. A counter of that may come later than another.
	for i, entries := range [][]string{{"quiet=x", "quiet=x", "client=x"}, {"client=x"}} {
		for _, entry := range entries {
			_, wantErr := ask(theirs.client, request("last", entry))
			_, gotErr := ask(mine, request("last", entry))
			if wantErr != nil || gotErr != nil {
				t.Fatal(wantErr, gotErr)
			}
		}
		celldtest.Eventually(t, "the reference has written its statistics", func() bool {
			return seriesIn(t, page(theirs.prometheus))[series{"total_hits", "last", "client", ""}] == i+1
		})
	}
	want, got := seriesIn(t, page(theirs.prometheus)), seriesIn(t, page(ours.metrics))
	all := maps.Clone(want)
	maps.Copy(all, got)
	kinds, differences := map[string]int{}, 0
	for one := range all {
		if leftOut[one.domain] || one.domain == "last" && one.key1 == "client" {
			continue
		}
		kinds[one.kind]++
		if got[one] != want[one] {
			if differences++; differences < 20 {
				t.Errorf("%q: got %d, want %d\n%s", one, got[one], want[one], config(one.domain))
			}
		}
	}
	t.Logf("%d series: %v; %d domains left out", len(all), kinds, len(leftOut))
	for _, kind := range []string{"total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode", "unknown_domain_not_found"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was compared", kind)
		}
	}
}
