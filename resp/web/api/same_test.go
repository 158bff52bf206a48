package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// asked is a call in both languages.
type asked struct {
	path string
	body map[string]any
	args []string
}

func drawAsked(t *rapid.T, lease int64) (c asked) {
	key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	limits := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"5/1s", "9/1m,algo=window", "3/1m,algo=slide", "4/10s,algo=conc", "@gold",
		"9007199254740991/1h,algo=window", "6/1s,algo=log,block=1s"}), 1, 3, rapid.ID).Draw(t, "limits")
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		n := rapid.Int64Range(0, 9).Draw(t, "n")
		return asked{"/v1/give", map[string]any{"key": key, "limit": limits[0], "n": n}, []string{"CL.GIVE", key, limits[0], fmt.Sprint(n)}}
	case 1:
		return asked{"/v1/release", map[string]any{"key": key, "lease": lease}, []string{"CL.RELEASE", key, fmt.Sprint(lease)}}
	case 2:
		n := rapid.Int64Range(0, 9).Draw(t, "n")
		return asked{"/v1/settle", map[string]any{"key": key, "lease": lease, "n": n},
			[]string{"CL.SETTLE", key, fmt.Sprint(lease), fmt.Sprint(n)}}
	case 3:
		ms := rapid.Int64Range(1, 9000).Draw(t, "ms")
		return asked{"/v1/renew", map[string]any{"key": key, "lease": lease, "ms": ms},
			[]string{"CL.RENEW", key, fmt.Sprint(lease), fmt.Sprint(ms)}}
	}
	c = asked{"/v1/take", map[string]any{"key": key, "limits": limits}, append([]string{"CL.TAKE", key}, limits...)}
	if cost := rapid.SampledFrom([]int64{-1, 0, 1, 2, 5, 1 << 40}).Draw(t, "cost"); cost >= 0 {
		c.body["cost"], c.args = cost, append(c.args, "COST", fmt.Sprint(cost))
	}
	if rapid.Bool().Draw(t, "us") {
		c.body["us"], c.args = true, append(c.args, "US")
	}
	if rapid.IntRange(0, 2).Draw(t, "leases") == 0 {
		c.body["lease_ms"], c.args = 5000, append(c.args, "LEASE", "5000")
	}
	switch mode := rapid.SampledFrom([]string{"", "take", "peek", "upto", "force", "reserve"}).Draw(t, "mode"); mode {
	case "":
	case "take":
		c.body["mode"] = mode
	case "reserve":
		c.body["mode"], c.body["max_ms"] = mode, 2000
		c.args = append(c.args, "RESERVE", map[bool]string{true: "2000000", false: "2000"}[c.body["us"] == true])
	default:
		c.body["mode"], c.args = mode, append(c.args, strings.ToUpper(mode))
	}
	return c
}

// Calls by HTTP and by RESP get equal answers, whatever came before.
func TestSameAsRESP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nowNS := int64(startNS)
		now := func() int64 { return nowNS }
		web, redis := newAPI(t, now), newAPI(t, now)
		for _, a := range []tested{web, redis} {
			a.command(t, "CL.POLICY", "SET", "gold", "4/1s", "20/1m,algo=window")
		}
		lease := int64(1)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			nowNS += rapid.SampledFrom([]int64{0, 1, 1e6, 3e8, 1e9, 7e9}).Draw(t, "ns")
			c := drawAsked(t, lease)
			body, err := json.Marshal(c.body)
			if err != nil {
				t.Fatal(err)
			}
			w, reply := web.ask(t, c.path, string(body)), redis.command(t, c.args...)
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(reply, "-") {
				why := strings.TrimSpace(strings.TrimPrefix(reply, "-ERR "))
				if detail, _ := got["detail"].(string); w.Code != 400 || !strings.HasSuffix(detail, why) {
					t.Fatalf("%q: %q, and by HTTP %d %s", c.args, reply, w.Code, w.Body)
				}
				continue
			}
			want := numbersOf(reply)
			has := numbersIn(got, c, len(want))
			if fmt.Sprint(has) != fmt.Sprint(want) {
				t.Fatalf("%q: %v, and by HTTP %v: %s", c.args, want, has, w.Body)
			}
			if id, ok := got["lease"].(float64); ok {
				lease = int64(id)
			}
		}
	})
}

// numbersOf are the integers of a reply.
func numbersOf(reply string) (all []int64) {
	for _, line := range strings.Split(reply, "\r\n") {
		switch line, found := strings.CutPrefix(line, ":"); {
		case found:
			n, _ := strconv.ParseInt(line, 10, 64)
			all = append(all, n)
		case strings.HasPrefix(line, "#"):
			all = append(all, map[string]int64{"#t": 1, "#f": 0}[line])
		}
	}
	return all
}

// numbersIn are the numbers of an answer in the order of CL.TAKE's reply, or the only one of another.
func numbersIn(got map[string]any, c asked, n int) (all []int64) {
	number := func(name string) int64 {
		switch v := got[name].(type) {
		case nil:
			if name == "lease" {
				return 0
			}
			return -1
		case bool:
			return map[bool]int64{true: 1, false: 0}[v]
		default:
			return int64(v.(float64))
		}
	}
	switch c.path {
	case "/v1/give":
		return []int64{number("given")}
	case "/v1/take":
	default:
		return []int64{number("done")}
	}
	unit := "_ms"
	if c.body["us"] == true {
		unit = "_us"
	}
	all = []int64{1 - number("allowed"), number("limit"), number("remaining"), number("retry_after" + unit), number("reset_after" + unit),
		number("granted"), number("wait" + unit)}
	if n == 8 {
		all = append(all, number("lease"))
	}
	return all
}

// No body ends anything, or is answered by other than these.
func FuzzBody(f *testing.F) {
	for _, c := range conversation {
		f.Add(c.path, c.body)
	}
	a := newConversation(f)
	f.Fuzz(func(t *testing.T, path, body string) {
		if a.Page(path) == nil || body == "" || strings.HasPrefix(path, showRoot) || strings.Contains(body, "wait") {
			return
		}
		switch w := a.ask(t, path, body); w.Code {
		case 200, 400, 404, 405, 413, 429, 503:
		default:
			t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
		}
	})
}
