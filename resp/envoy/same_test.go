package envoy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/resp"
	"celld/resp/config"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/message"
	"celld/resp/session/sessiontest"
	"celld/store/memory"

	"pgregory.net/rapid"
)

// kinds are descriptors whose limits celld has by other doors, too.
var kinds = []struct{ key, algorithm, rest, limit string }{
	{"p", "@gold", "", "@gold"},
	{"s", "slide", ", unit: minute, requests_per_unit: 5", "5/60s,algo=slide"},
	{"g", "gcra", ", unit: second, requests_per_unit: 4", "4/1s,algo=gcra"},
	{"w", "window", ", unit: minute, requests_per_unit: 3", "3/60s,algo=window"},
	{"l", "log", ", unit: minute, requests_per_unit: 2", "2/60s,algo=log"},
}

// Envoy is told what CL.TAKE, CL.MTAKE and CL.GIVE answer, it is counted in the same way, and it leaves the same.
func TestSameByRESP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nowNS := int64(1_800_000_000e9)
		at := func() int64 { return nowNS }
		serve := func() (do func(words ...string) string, server *resp.Server) {
			server = resp.NewServer(resp.Options{Config: config.New(), Store: memory.New(memory.Options{Now: at}), Clock: at})
			do = func(words ...string) string { return sessiontest.Send(server.Sessions(), sessiontest.Frame(words...)) }
			do("CL.POLICY", "SET", "gold", "4/1s", "9/1m,algo=window")
			do("CL.TAKE", "another", "@gold", "PEEK") // CL.STATS names a policy's limits from its first call on
			return do, server
		}
		byRESP, _ := serve()
		byEnvoy, server := serve()
		together := rapid.Bool().Draw(t, "all or none")
		s := &service{limits: server.Door, options: Options{AllOrNone: together, NearLimit: 0.8}, stats: newStatistics(),
			now: func() time.Time { return time.Unix(0, nowNS) }}
		var lines []string
		for _, k := range kinds {
			lines = append(lines, fmt.Sprintf("%s rate_limit: {algorithm: '%s'%s}", k.key, k.algorithm, k.rest))
		}
		set, err := domains.Parse([]domains.File{{Name: "limits.yaml", Text: []byte(limits(lines...))}}, domains.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.set.Store(set)
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			nowNS += rapid.SampledFrom([]int64{0, 1e6, 3e8, 1e9, 7e9, 61e9}).Draw(t, "ns")
			q := &message.Request{Domain: "d"}
			hits := rapid.Uint64Range(0, 5).Draw(t, "hits")
			negative := hits > 0 && rapid.IntRange(0, 4).Draw(t, "gives") == 0
			var pairs []string
			for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(kinds)-1), 1, 3, rapid.ID).Draw(t, "kinds") {
				q.Descriptors = append(q.Descriptors, message.Descriptor{Hits: &hits, Negative: negative,
					Entries: []message.Entry{{Key: kinds[k].key, Value: "x"}}})
				pairs = append(pairs, kinds[k].key, kinds[k].limit)
			}
			answer, err := s.ask(q)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for _, status := range answer.Statuses {
				got = append(got, fmt.Sprint(status.Code == message.Over, status.Remaining))
			}
			n := fmt.Sprint(hits)
			if together && !negative && hits > 0 {
				words := append([]string{"CL.MTAKE", fmt.Sprint(len(pairs) / 2)}, pairs...)
				all := integers(byRESP(append(words, "COST", n)...))[5:]
				for i := 1; i < len(pairs); i += 2 {
					some := 5
					if pairs[i] == "@gold" { // of two limits
						some = 10
					}
					want, all = append(want, told(all[:some])), all[some:]
				}
			} else {
				for i := 0; i < len(pairs); i += 2 {
					cost := n
					if negative {
						byRESP("CL.GIVE", pairs[i], pairs[i+1], n)
						cost = "0"
					}
					want = append(want, told(integers(byRESP("CL.TAKE", pairs[i], pairs[i+1], "COST", cost, "FULL"))[7:]))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%v, %s hits, negative %v, together %v:\nEnvoy is told %q\nby RESP it is %q",
					pairs, n, negative, together, got, want)
			}
		}
		for _, name := range []string{"gold", "literals"} {
			if got, want := byEnvoy("CL.STATS", name), byRESP("CL.STATS", name); got != want {
				t.Fatalf("CL.STATS %s after Envoy's requests:\n%q\nand after the same by RESP:\n%q", name, got, want)
			}
		}
		for _, by := range []string{"DENIED", "CALLS", "NEAR"} { // of keys that have other names here
			counts := regexp.MustCompile(`:\d+`)
			got, want := counts.FindAllString(byEnvoy("CL.TOP", "BY", by), -1), counts.FindAllString(byRESP("CL.TOP", "BY", by), -1)
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Fatalf("CL.TOP BY %s: %q after Envoy's requests, and %q after the same by RESP", by, got, want)
			}
		}
		for _, k := range kinds {
			key := string(appendKey(nil, "d", []message.Entry{{Key: k.key, Value: "x"}}, nil, k.algorithm, together))
			if got, want := byEnvoy("HGETALL", key), byRESP("HGETALL", k.key); got != want {
				t.Fatalf("%s after Envoy's requests:\n%q\nand after the same by RESP:\n%q", key, got, want)
			}
		}
	})
}

// integers are those of a reply.
func integers(reply string) (all []int64) {
	for _, line := range strings.Split(reply, "\r\n") {
		if line, found := strings.CutPrefix(line, ":"); found {
			n, _ := strconv.ParseInt(line, 10, 64)
			all = append(all, n)
		}
	}
	return all
}

// told is what Envoy is told of limits of five numbers each: that one denies, and then that nothing remains, or the least that remains.
func told(all []int64) string {
	least := all[2]
	for ; len(all) > 0; all = all[5:] {
		if all[0] == 1 {
			return "true 0"
		}
		least = min(least, all[2])
	}
	return fmt.Sprint(false, least)
}
