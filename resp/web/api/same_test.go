package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/resp/session/sessiontest"

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
		"9007199254740991/1h,algo=window", "6/1s,algo=log,block=1s", "5/1s,name=x", "7/1s,name=y",
		"@llm"}), 1, 3, rapid.ID).Draw(t, "limits")
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0:
		n := rapid.Int64Range(0, 9).Draw(t, "n")
		c = asked{"/v1/give", map[string]any{"key": key, "limit": limits[0], "n": n}, []string{"CL.GIVE", key, limits[0], fmt.Sprint(n)}}
		if rapid.IntRange(0, 2).Draw(t, "of") == 0 {
			name := rapid.SampledFrom([]string{"x", "y", "z", "no name"}).Draw(t, "name")
			c.body["of"], c.args = name, append(c.args, "OF", name)
		}
		return c
	case 1:
		return asked{"/v1/release", map[string]any{"key": key, "lease": lease}, []string{"CL.RELEASE", key, fmt.Sprint(lease)}}
	case 2:
		n := rapid.Int64Range(0, 9).Draw(t, "n")
		c = asked{"/v1/settle", map[string]any{"key": key, "lease": lease, "n": n},
			[]string{"CL.SETTLE", key, fmt.Sprint(lease), fmt.Sprint(n)}}
		if costs, words := drawCosts(t); len(costs) > 0 {
			if c.body["costs"] = costs; rapid.Bool().Draw(t, "only costs") {
				delete(c.body, "n")
				c.args = c.args[:3]
			}
			for _, cost := range words {
				c.args = append(c.args, cost[1:]...)
			}
		}
		return c
	case 3:
		ms := rapid.Int64Range(1, 9000).Draw(t, "ms")
		return asked{"/v1/renew", map[string]any{"key": key, "lease": lease, "ms": ms},
			[]string{"CL.RENEW", key, fmt.Sprint(lease), fmt.Sprint(ms)}}
	case 4:
		n := rapid.SliceOfN(rapid.Int64Range(1, 5), 3, 3).Draw(t, "numbers")
		quantity := rapid.Int64Range(0, 6).Draw(t, "quantity")
		return asked{"/throttle",
			map[string]any{"key": "t", "max_burst": n[0], "count_per_period": n[1], "period": n[2], "quantity": quantity},
			[]string{"CL.THROTTLE", "t", fmt.Sprint(n[0] - 1), fmt.Sprint(n[1]), fmt.Sprint(n[2]), fmt.Sprint(quantity)}}
	}
	c = asked{"/v1/take", map[string]any{"key": key, "limits": limits}, append([]string{"CL.TAKE", key}, limits...)}
	if rapid.IntRange(0, 3).Draw(t, "keys") == 0 {
		c.body, c.args = map[string]any{}, []string{"CL.MTAKE", fmt.Sprint(len(limits))}
		var keys []any
		for _, limit := range limits {
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key of a pair")
			keys, c.args = append(keys, map[string]any{"key": key, "limits": []string{limit}}), append(c.args, key, limit)
		}
		c.body["keys"] = keys
	}
	if cost := rapid.SampledFrom([]int64{-1, 0, 1, 2, 5, 1 << 40}).Draw(t, "cost"); cost >= 0 {
		c.body["cost"], c.args = cost, append(c.args, "COST", fmt.Sprint(cost))
	}
	if costs, words := drawCosts(t); len(costs) > 0 {
		c.body["costs"], c.args = costs, append(c.args, slices.Concat(words...)...)
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

// drawCosts draws costs of limits with names, as JSON has them, and as words of a command.
func drawCosts(t *rapid.T) (costs map[string]any, words [][]string) {
	costs = map[string]any{}
	for _, name := range []string{"x", "y", "z"} {
		if rapid.IntRange(0, 4).Draw(t, "named") == 0 {
			n := rapid.SampledFrom([]int64{0, 1, 2, 3, 9}).Draw(t, "cost of "+name)
			costs[name], words = n, append(words, []string{"COST", fmt.Sprint(n), "OF", name})
		}
	}
	return costs, words
}

// doors are the ways in which a call comes in. Each returns the numbers of the answer, or an error.
var doors = map[string]func(a tested, t *rapid.T, c asked) (numbers []int64, problem string){
	"RESP": func(a tested, t *rapid.T, c asked) ([]int64, string) { return read(a.command(t, c.args...)) },
	"EXEC": func(a tested, _ *rapid.T, c asked) ([]int64, string) {
		frames := sessiontest.Frame("MULTI") + sessiontest.Frame(c.args...) + sessiontest.Frame("EXEC")
		return read(strings.TrimPrefix(sessiontest.Send(a.server.Sessions(), frames), "+OK\r\n+QUEUED\r\n*1\r\n"))
	},
	"a script": func(a tested, t *rapid.T, c asked) ([]int64, string) {
		numbers, problem := read(a.command(t, append([]string{"EVAL", "return redis.call(unpack(ARGV))", "1", c.args[1]}, c.args...)...))
		problem, _, _ = strings.Cut(problem, " script: ")
		return numbers, problem
	},
	"JSON": func(a tested, t *rapid.T, c asked) ([]int64, string) { return a.asks(t, c, c.path, c.body) },
	"JSON of several": func(a tested, t *rapid.T, c asked) ([]int64, string) {
		if c.path != "/v1/take" {
			return a.asks(t, c, c.path, c.body)
		}
		return a.asks(t, c, c.path, map[string]any{"calls": []any{c.body}})
	},
}

// asks asks by HTTP.
func (a tested) asks(t *rapid.T, c asked, path string, body map[string]any) (numbers []int64, problem string) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := a.ask(t, path, string(text))
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if several, ok := got["results"].([]any); ok {
		got = several[0].(map[string]any)
	}
	if detail, failed := got["detail"].(string); failed {
		if _, after, ok := strings.Cut(detail, "]: "); ok {
			detail = after
		}
		return nil, "ERR " + detail
	}
	return numbersIn(got, c), ""
}

// read returns the numbers of a reply, or its error.
func read(reply string) (numbers []int64, problem string) {
	if text, failed := strings.CutPrefix(reply, "-"); failed {
		return nil, strings.TrimSpace(text)
	}
	numbers = numbersOf(reply)
	switch _, rest, _ := strings.Cut(reply, "\r\n"); { // it holds no lease
	case strings.HasPrefix(reply, "*7\r\n:"):
		numbers = append(numbers, 0)
	case strings.HasPrefix(rest, "*5\r\n"):
		numbers = slices.Insert(numbers, 5, 0)
	}
	return numbers, ""
}

// A call gets the same answer by each door, whatever came before, is counted in the same way, and leaves the same.
func TestSameByEachDoor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nowNS := int64(startNS)
		servers := map[string]tested{}
		serve := func() tested {
			a := newAPI(t, func() int64 { return nowNS })
			a.command(t, "CL.POLICY", "SET", "gold", "4/1s", "20/1m,algo=window")
			a.command(t, "CL.POLICY", "SET", "llm", "8/10s", "9/10s,name=x", "3/1m,name=y,algo=window")
			a.command(t, "CL.TAKE", "another", "@gold", "@llm", "PEEK") // CL.STATS names a policy's limits from its first call on
			return a
		}
		for door := range doors {
			servers[door] = serve()
		}
		file, empty := serve(), serve()
		replay := file.server.Door.Replay()
		lease := int64(1)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			nowNS += rapid.SampledFrom([]int64{0, 1, 1e6, 3e8, 1e9, 7e9}).Draw(t, "ns")
			c := drawAsked(t, lease)
			want, problem := doors["RESP"](servers["RESP"], t, c)
			for door, ask := range doors {
				if door == "RESP" {
					continue
				}
				has, wrong := ask(servers[door], t, c)
				if !slices.Equal(has, want) || wrong != problem {
					t.Fatalf("%q by RESP: %v %q; by %s: %v %q", c.args, want, problem, door, has, wrong)
				}
			}
			var words [][]byte
			for _, arg := range c.args {
				words = append(words, []byte(arg))
			}
			if err := replay(words); (err != nil) != (problem != "") {
				t.Fatalf("%q by RESP: %q; in a file: %v", c.args, problem, err)
			}
			if c.args[0] == "CL.TAKE" && len(want) == 8 && want[7] != 0 {
				lease = want[7]
			}
		}
		for _, words := range [][]string{{"HGETALL", "a"}, {"HGETALL", "b"}, {"GET", "t"}, {"CL.STATS"}, {"CL.STATS", "gold"},
			{"CL.STATS", "literals"}, {"CL.TOP"},
			{"CL.TOP", "BY", "CALLS"}, {"CL.TOP", "BY", "NEAR", "LAST", "1m"}} {
			want := servers["RESP"].command(t, words...)
			for door, a := range servers {
				if got := a.command(t, words...); got != want {
					t.Fatalf("%s after %s:\n%q\nand after RESP\n%q", words, door, got, want)
				}
			}
			if counts := strings.HasPrefix(words[0], "CL."); counts { // what a file says does not count
				want = empty.command(t, words...)
			}
			if got := file.command(t, words...); got != want {
				t.Fatalf("%s after a file:\n%q\nwant\n%q", words, got, want)
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
func numbersIn(got map[string]any, c asked) []int64 {
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
	unit := "_ms"
	if c.body["us"] == true {
		unit = "_us"
	}
	decision := func() []int64 {
		return []int64{1 - number("allowed"), number("limit"), number("remaining"), number("retry_after" + unit),
			number("reset_after" + unit)}
	}
	switch c.path {
	case "/throttle":
		unit = ""
		if all := decision(); all[0] == 1 {
			return all
		}
		got["retry_after"] = nil // which is 0 there
		return decision()
	case "/v1/give":
		return []int64{number("given")}
	case "/v1/take":
	default:
		return []int64{number("done")}
	}
	keys, several := got["keys"].([]any)
	if !several {
		return append(decision(), number("granted"), number("wait"+unit), number("lease"))
	}
	all := []int64{1 - number("allowed"), number("bound"), number("granted"), number("retry_after" + unit), number("wait" + unit),
		number("lease")}
	for _, one := range keys {
		got = one.(map[string]any)
		all = append(all, decision()...)
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
