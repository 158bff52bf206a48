package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"celld/internal/celldtest"
	"celld/persistence"
	"celld/resp"
	"celld/resp/clock"
	"celld/resp/config"
	"celld/resp/session/sessiontest"
	"celld/store/memory"
)

// startNS is some instant in 2026.
const startNS = 1_790_000_000_000_000_000

// tester is a test, of rapid, too.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// tested is an API, and its server.
type tested struct {
	API
	server *resp.Server
}

// newAPI returns an API to an empty store, at a time.
func newAPI(t tester, nowNS func() int64) tested {
	t.Helper()
	cfg, clock := config.New(config.Part{Rows: config.Scripts}), clock.New()
	keys := memory.New(memory.Options{MaxKeys: 1000, Now: nowNS})
	disk := cfg.Persistence()
	disk.Clock, disk.Log = nowNS, slog.New(slog.DiscardHandler)
	server := resp.NewServer(resp.Options{
		Config: cfg, Store: keys, Log: slog.New(slog.DiscardHandler), Clock: nowNS, ReadClocks: clock.Read,
		Persistence: persistence.New(keys, disk), Scripts: sessiontest.Scripts,
	})
	return tested{API{Door: server.Door, Trusted: true}, server}
}

func atStart() int64 { return startNS }

// ask asks for a path by POST where there is a body, and by GET where there is none.
func (a tested) ask(t tester, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	answer := a.Page(r.URL.EscapedPath())
	if answer == nil {
		t.Fatalf("%s is not served", path)
	}
	answer(w, r)
	return w
}

// command runs a command, and returns its reply.
func (a tested) command(t tester, words ...string) string {
	t.Helper()
	return sessiontest.Do(a.server.Sessions(), words...)
}

// conversation is asked in this order, of one server whose time stands still. It also tests openapi.json.
var conversation = []struct {
	path, body string
	status     int
	want       string // the answer, or of a problem the detail
}{
	{"/v1/take", `{"key":"user:42","limits":["100/1m","@gold"]}`, 200,
		`{"allowed":true,"limit":100,"remaining":99,"retry_after_ms":null,"reset_after_ms":8640,"granted":1,"wait_ms":0,"bound_by":"100/1m","policy":null}`},
	{"/v1/take", `{"key":"u","limits":["1/1m"],"full":true}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":60000,"granted":1,"wait_ms":0,"bound_by":"1/1m","policy":null,` +
			`"full":[{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":60000,"text":"1/1m","policy":null}]}`},
	{"/v1/take", `{"key":"u","limits":["1/1m"]}`, 200,
		`{"allowed":false,"limit":1,"remaining":0,"retry_after_ms":60000,"reset_after_ms":60000,"granted":0,"wait_ms":0,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"u","limits":["1/1m"],"us":true,"mode":"peek"}`, 200,
		`{"allowed":false,"limit":1,"remaining":0,"retry_after_us":60000000,"reset_after_us":60000000,"granted":0,"wait_us":0,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"u","limits":["1/1m"],"cost":2}`, 200,
		`{"allowed":false,"limit":1,"remaining":0,"never":true,"retry_after_ms":null,"reset_after_ms":60000,"granted":0,"wait_ms":0,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"u","limits":["1/1m"],"mode":"reserve","max_ms":60000}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":120000,"granted":1,"wait_ms":60000,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"v","limits":["1/1m"]}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":60000,"granted":1,"wait_ms":0,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"v","limits":["1/1m"],"mode":"reserve","max_ms":60000,"us":true}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"retry_after_us":null,"reset_after_us":120000000,"granted":1,"wait_us":60000000,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"v","limits":["1/1m"],"mode":"wait","max_ms":1099511627777,"us":true}`, 400,
		"WAIT and RESERVE take from 0 to 60000 ms (--wait-max)"},
	{"/v1/release", `{"lease":1}`, 400, "key: is missing"},
	{"/v1/release", `{"key":1}`, 400, "key: expected a string"},
	{"/throttle", `{"max_burst":1}`, 400, `{"error":"key: is missing"}`},
	{"/throttle", `{"key":1}`, 400, `{"error":"key: expected a string"}`},
	{"/v1/take", `{"key":"u","limits":["5/1h,algo=window"],"cost":9,"mode":"upto"}`, 200,
		`{"allowed":true,"limit":5,"remaining":0,"retry_after_ms":null,"reset_after_ms":3600000,"granted":5,"wait_ms":0,"bound_by":"5/1h,algo=window","policy":null}`},
	{"/v1/take", `{"key":"u","limits":["5/1h,algo=window"],"cost":9007199254740991,"mode":"force"}`, 400,
		"nothing was taken: a limit counts to 9007199254740991, and flows back in 292 years at most"},
	{"/v1/take", `{"key":"\u0000é","limits":["9007199254740991/month"],"cost":9007199254740990}`, 200,
		`{"allowed":true,"limit":9007199254740991,"remaining":1,"retry_after_ms":null,"reset_after_ms":812800000,"granted":9007199254740990,"wait_ms":0,"bound_by":"9007199254740991/month","policy":null}`},
	{"/v1/take?status=429", `{"key":"u","limits":["1/1m","@gold"]}`, 429, "retry in 120 s"},
	{"/v1/take?status=429", `{"key":"free","limits":["1/1m"]}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":60000,"granted":1,"wait_ms":0,"bound_by":"1/1m","policy":null}`},
	{"/v1/take", `{"key":"bad:1","limits":["1/1m"]}`, 200,
		`{"allowed":false,"limit":0,"remaining":0,"never":true,"retry_after_ms":null,"reset_after_ms":0,"granted":0,"wait_ms":0,"bound_by":null,"policy":null}`},
	{"/v1/take", `{"keys":[{"key":"a","limits":["5/1s"]},{"key":"b","limits":["2/1m","@gold"]}],"cost":2}`, 200,
		`{"allowed":true,"bound":0,"retry_after_ms":null,"granted":2,"wait_ms":0,"bound_by":"2/1m","policy":null,"keys":[` +
			`{"allowed":true,"limit":5,"remaining":3,"retry_after_ms":null,"reset_after_ms":400,"text":"5/1s","policy":null},` +
			`{"allowed":true,"limit":2,"remaining":0,"retry_after_ms":null,"reset_after_ms":60000,"text":"2/1m","policy":null},` +
			`{"allowed":true,"limit":100,"remaining":98,"retry_after_ms":null,"reset_after_ms":1200,"text":"100/1m","policy":"gold"},` +
			`{"allowed":true,"limit":10000,"remaining":9998,"retry_after_ms":null,"reset_after_ms":17280,"text":"10000/1d","policy":"gold"}]}`},
	{"/v1/take", `{"keys":[{"key":"a","limits":["5/1s"]},{"key":"b","limits":["2/1m"]}]}`, 200,
		`{"allowed":false,"bound":2,"retry_after_ms":30000,"granted":0,"wait_ms":0,"bound_by":"2/1m","policy":null,"keys":[` +
			`{"allowed":true,"limit":5,"remaining":3,"retry_after_ms":null,"reset_after_ms":400,"text":"5/1s","policy":null},` +
			`{"allowed":false,"limit":2,"remaining":0,"retry_after_ms":30000,"reset_after_ms":60000,"text":"2/1m","policy":null}]}`},
	{"/v1/take", `{"calls":[{"key":"c","limits":["2/1m"]},{"key":"gold","limits":["1/1m"]},` +
		`{"key":"c","limits":["2/1m"],"us":true,"full":true},` +
		`{"keys":[{"key":"c","limits":["2/1m"]}]}]}`, 200,
		`{"results":[{"allowed":true,"limit":2,"remaining":1,"retry_after_ms":null,"reset_after_ms":30000,"granted":1,"wait_ms":0,"bound_by":"2/1m","policy":null},` +
			`{"status":400,"detail":"WRONGTYPE Operation against a key holding the wrong kind of value"},` +
			`{"allowed":true,"limit":2,"remaining":0,"retry_after_us":null,"reset_after_us":60000000,"granted":1,"wait_us":0,"bound_by":"2/1m","policy":null,` +
			`"full":[{"allowed":true,"limit":2,"remaining":0,"retry_after_us":null,"reset_after_us":60000000,"text":"2/1m","policy":null}]},` +
			`{"allowed":false,"bound":1,"retry_after_ms":30000,"granted":0,"wait_ms":0,"bound_by":"2/1m","policy":null,"keys":[` +
			`{"allowed":false,"limit":2,"remaining":0,"retry_after_ms":30000,"reset_after_ms":60000,"text":"2/1m","policy":null}]}]}`},

	{"/v1/give", `{"key":"c","limit":"2/1m","n":5}`, 200, `{"given":2}`},
	{"/v1/give", `{"key":"c","limit":"@gold","n":5}`, 200, `{"given":0}`},
	{"/v1/give", `{"key":"c","limit":"2/1m","n":-1}`, 400, "n must not be negative"},
	{"/v1/give", `{"key":"c","limit":"2/1m"}`, 400, "n: is missing"},
	{"/v1/give", `{"key":"c","limit":"2/1m","n":1,"lease":1}`, 400, "lease: an unknown field"},
	{"/v1/give", `{"limit":"2/1m","n":1}`, 400, "key: is missing"},

	{"/v1/take", `{"key":"job","limits":["100/1m"],"cost":40,"lease_ms":60000,"id":"r1"}`, 200,
		`{"allowed":true,"limit":100,"remaining":60,"retry_after_ms":null,"reset_after_ms":24000,"granted":40,"wait_ms":0,"lease":1790000000000000,"bound_by":"100/1m","policy":null}`},
	{"/v1/renew", `{"key":"job","lease":1790000000000000,"ms":90000}`, 200, `{"done":true}`},
	{"/v1/renew", `{"key":"job","lease":1790000000000000,"ms":0}`, 400, "a lease must be between 1 and 31622400000 ms"},
	{"/v1/show/job", "", 200,
		`[{"limit":"100/1m","policy":null,"capacity":100,"used":40,"remaining":60,"full_in_ms":24000,"next_in_ms":0,"waiting":0,"leases":1,"blocked_ms":0}]`},
	{"/v1/settle", `{"key":"job","lease":1790000000000000,"n":10}`, 200, `{"done":true}`},
	{"/v1/settle", `{"key":"job","lease":1790000000000000,"n":10}`, 200, `{"done":false}`},
	{"/v1/settle", `{"key":"job","lease":1,"n":9007199254740992}`, 400, "n must be between 0 and 9007199254740991"},
	{"/v1/release", `{"key":"job","lease":1790000000000000}`, 200, `{"done":false}`},
	{"/v1/show/none", "", 200, `[]`},
	{"/v1/show/gold", "", 200, `[{"count":7}]`},
	{"/v1/show/a%2Fb%20c", "", 200, `[]`},
	{"/v1/show/user%3A42", "", 200,
		`[{"limit":"100/1m","policy":null,"capacity":100,"used":1,"remaining":99,"full_in_ms":600,"next_in_ms":0,"waiting":0,"leases":0,"blocked_ms":0},` +
			`{"limit":"100/1m","policy":"gold","capacity":100,"used":1,"remaining":99,"full_in_ms":600,"next_in_ms":0,"waiting":0,"leases":0,"blocked_ms":0},` +
			`{"limit":"10000/1d","policy":"gold","capacity":10000,"used":1,"remaining":9999,"full_in_ms":8640,"next_in_ms":0,"waiting":0,"leases":0,"blocked_ms":0}]`},

	{"/throttle", `{"key":"t","max_burst":2,"count_per_period":10,"period":60}`, 200,
		`{"allowed":true,"limit":2,"remaining":1,"reset_after":6,"retry_after":0}`},
	{"/throttle", `{"key":"t","max_burst":2,"count_per_period":10,"period":60,"quantity":2,"other":[]}`, 200,
		`{"allowed":false,"limit":2,"remaining":1,"reset_after":6,"retry_after":6}`},
	{"/throttle", `{"key":"t","max_burst":2,"count_per_period":10,"period":60,"quantity":3}`, 200,
		`{"allowed":false,"limit":2,"remaining":1,"reset_after":6,"retry_after":-1}`},
	{"/throttle", `{"key":"one","max_burst":1,"count_per_period":1,"period":60,"quantity":null}`, 200,
		`{"allowed":true,"limit":1,"remaining":0,"reset_after":60,"retry_after":0}`},
	{"/throttle", `{"key":"one","max_burst":1,"count_per_period":1,"period":60}`, 200,
		`{"allowed":false,"limit":1,"remaining":0,"reset_after":60,"retry_after":60}`},
	{"/throttle", `{"key":"t","max_burst":0,"count_per_period":10,"period":60}`, 400, `{"error":"max_burst: expected 1 or more"}`},
	{"/throttle", `{"key":"t","max_burst":1,"count_per_period":10}`, 400, `{"error":"period: is missing"}`},
	{"/throttle", `{"key":"t","max_burst":1,"count_per_period":10,"period":60,"quantity":-1}`, 400, `{"error":"quantity: expected 0 or more"}`},
	{"/throttle", `{"key":"t","max_burst":9,"count_per_period":1,"period":9223372036854775807}`, 400,
		`{"error":"Cell error: Store error: Out of range: period 9223372036854775807"}`},

	{"/v1/take", `{}`, 400, "key: is missing"},
	{"/v1/take", `{"key":"a"}`, 400, "limits: expected one at least, such as 100/1m or @gold"},
	{"/v1/take", `{"key":"a","limits":[]}`, 400, "limits: expected one at least, such as 100/1m or @gold"},
	{"/v1/take", `{"key":"a","limits":["PEEK"]}`, 400, "limits[0]: expected count/period, such as 100/1m, or @policy"},
	{"/v1/take", `{"key":"a","limits":["1/1m","1/1y"]}`, 400, "limits[1]: invalid limit: period '1y': unknown unit, expected us, ms, s, m, h or d, such as 1m, or second, minute, hour, day, week, month or year"},
	{"/v1/take", `{"key":"a","limits":["@none"]}`, 404, "limits[0]: NOPOLICY no such policy 'none'"},
	{"/v1/take", `{"key":"a","limits":["1/1m","2/1m"]}`, 400, "two limits differ only in count or burst: one needs a name, such as 100/1m,name=tokens"},
	{"/v1/take", `{"key":"a","key":"b"}`, 400, "key: the field is given twice"},
	{"/v1/take", `{"key":"a","Key":"b"}`, 400, "Key: an unknown field"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"bind":true}`, 400, "bind: an unknown field"},
	{"/v1/take", `{"key":1,"limits":["1/1m"]}`, 400, "key: expected a string"},
	{"/v1/take", `{"key":"a","limits":"1/1m"}`, 400, "limits: expected a list"},
	{"/v1/take", `{"key":"a","limits":["1/1m",7]}`, 400, "limits[1]: expected a string"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"cost":"1"}`, 400, "cost: expected an integer, up to 9007199254740991"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"cost":1.5}`, 400, "cost: expected an integer, up to 9007199254740991"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"cost":-1}`, 400, "cost must be between 0 and 9007199254740991"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"full":1}`, 400, "full: expected true or false"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"mode":"steal"}`, 400, "mode: expected take, peek, upto, force, reserve or wait"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"max_ms":5}`, 400, "max_ms: needs mode reserve or wait"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"mode":"wait","max_ms":60001}`, 400, "WAIT and RESERVE take from 0 to 60000 ms (--wait-max)"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"mode":"wait","max_ms":9223372036854775807,"us":true}`, 400,
		"WAIT and RESERVE take from 0 to 60000 ms (--wait-max)"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"mode":"wait","max_ms":-9223372036854775808,"us":true}`, 400,
		"WAIT and RESERVE take from 0 to 60000 ms (--wait-max)"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"cost":9223372036854775808}`, 400, "cost: expected an integer, up to 9007199254740991"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"mode":""}`, 400, "mode: expected take, peek, upto, force, reserve or wait"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"lease_ms":5,"id":""}`, 400, "ID must have 1 to 64 bytes"},
	{"/v1/take", `{"key":"a","limits":[` + strings.Repeat(`"/",`, 9000) + `"/"]}`, 400, "limits: expected 128 at most, in all"},
	{"/v1/take", `{"calls":[{"keys":[{"key":"a","limits":[` + strings.Repeat(`"/",`, 128) + `"/"]}]}]}`, 400,
		"calls[0].limits: expected 128 at most, in all"},
	{"/v1/take?status=429", `{"key":"u","limits":["1/1m"],"cost":2}`, 429, "it never passes"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"id":"x"}`, 400, "BIND and ID need a lease: LEASE, or a limit with algo=conc"},
	{"/v1/take", `{"key":"a","limits":["1/1m"],"keys":[]}`, 400, "keys: neither key nor limits may stand beside it"},
	{"/v1/take", `{"keys":[]}`, 400, "keys: expected one at least"},
	{"/v1/take", `{"keys":[{"key":"a","limits":["1/1m"]},{"limits":["1/1m"]}]}`, 400, "keys[1].key: is missing"},
	{"/v1/take", `{"keys":[{"key":"a","limits":["1/1m","0/1s"]}]}`, 400, "keys[0].limits[1]: invalid limit: count '0': expected 1 to 9007199254740991"},
	{"/v1/take", `{"keys":[{"key":"a","limits":["1/1m"]}],"full":true}`, 400, "full: keys are always told of"},
	{"/v1/take", `{"calls":[]}`, 400, "calls: expected 1 to 128"},
	{"/v1/take", `{"calls":[{"key":"n","limits":["1/1m"]},{"key":"n","limits":["0/1m"]}]}`, 400,
		"calls[1].limits[0]: invalid limit: count '0': expected 1 to 9007199254740991"},
	{"/v1/take", `{"calls":[{"key":"n","limits":["1/1m"]},{"key":"n"}]}`, 400, "calls[1].limits: expected one at least, such as 100/1m or @gold"},
	{"/v1/take", `{"calls":[{"key":"n","limits":["1/1m"],"cost":-1}]}`, 400, "calls[0]: cost must be between 0 and 9007199254740991"},
	{"/v1/take", `{"calls":[{"key":"n","limits":["1/1m"]}],"cost":1}`, 400, "calls: no other field may stand beside it"},
	{"/v1/take", `{"calls":[{"calls":[]}]}`, 400, "calls[0].calls: calls have no calls"},
	{"/v1/take?status=429", `{"calls":[{"key":"n","limits":["1/1m"]}]}`, 400, "status=429 is for one call: each of several has its own answer"},
	{"/v1/take?status=500", `{"key":"n","limits":["1/1m"]}`, 400, "unknown query: expected ?status=429, or none"},
	{"/v1/take", `{"key":`, 400, "not JSON, at byte 7"},
	{"/v1/take", `[]`, 400, "the body: expected an object"},
	{"/v1/take", `{"calls":[` + strings.Repeat(`{"key":"n","limits":["1/1m"]},`, 128) + `{"key":"n","limits":["1/1m"]}]}`, 400, "calls: expected 1 to 128"},
	{"/v1/take", `{"key":"` + strings.Repeat("k", 64<<10) + `"}`, 413, "a body has at most 65536 bytes"},
	{"/v1/show/n", "", 200, `[]`}, // no call that was wrong has taken
}

func newConversation(t tester) tested {
	a := newAPI(t, atStart)
	a.command(t, "CL.POLICY", "SET", "gold", "100/1m", "10000/1d")
	a.command(t, "CL.RULE", "ADD", "DENY", "bad:*")
	a.command(t, "SET", "gold", "7")
	return a
}

func TestAnswers(t *testing.T) {
	a := newConversation(t)
	for _, c := range conversation {
		w := a.ask(t, c.path, c.body)
		got := strings.TrimSuffix(w.Body.String(), "\n")
		if w.Header().Get("Content-Type") == "application/problem+json" {
			var p struct {
				Status int
				Detail string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &p, json.MatchCaseInsensitiveNames(true)); err != nil || p.Status != w.Code {
				t.Errorf("%s: %v", got, err)
			}
			got = p.Detail
		}
		if w.Code != c.status || got != c.want {
			t.Errorf("%s %.300s: %d\n got %s\nwant %s", c.path, c.body, w.Code, got, c.want)
		}
	}
}

// One call is told by the RateLimit fields, too. A denied one says when to come again.
func TestFields(t *testing.T) {
	a := newConversation(t)
	for _, lastReset := range []string{"6400", "60"} { // the second is denied, and t is never after its Retry-After
		w := a.ask(t, "/v1/take", `{"key":"k","limits":["1/1m","@gold","5/1h,algo=slide","9007199254740991/1h,algo=window"]}`)
		want := `"1/1m";r=0;t=60, "gold 100/1m";r=99;t=1, "gold 10000/1d";r=9999;t=9, "5/1h,algo=slide";r=4;t=` + lastReset
		if got := fields(w, "RateLimit"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if got := fields(w, "RateLimit-Policy"); got !=
			`"1/1m";q=1;w=60, "gold 100/1m";q=100;w=60, "gold 10000/1d";q=10000;w=86400, "5/1h,algo=slide";q=5;w=3600` {
			t.Error(got)
		}
	}
	if h := a.ask(t, "/v1/take", `{"key":"k","limits":["1/1m"]}`).Header(); h.Get("Retry-After") != "60" {
		t.Errorf("%v", h)
	}
	if got := fields(a.ask(t, "/v1/take", `{"key":"bad:1","limits":["1/1m"]}`), "RateLimit"); got != `"1/1m";r=0` {
		t.Errorf("a rule without an end: %s", got)
	}
	if h := a.ask(t, "/v1/take", `{"key":"k","limits":["1/1m"],"cost":2}`).Header(); h.Get("Retry-After") != "" {
		t.Errorf("it never passes, and may be asked for again: %v", h)
	}
	w := a.ask(t, "/v1/take", `{"calls":[{"key":"k","limits":["1/1m"]}]}`)
	if fields(w, "RateLimit") != "" || w.Header().Get("Retry-After") != "" {
		t.Errorf("%v", w.Header())
	}
}

// fields are a header's as it is written.
func fields(w *httptest.ResponseRecorder, name string) string {
	return strings.Join(w.Header()[name], "\n")
}

func TestMethods(t *testing.T) {
	a := newAPI(t, atStart)
	for path, allow := range map[string]string{
		"/v1/take": "POST", "/v1/give": "POST", "/v1/release": "POST", "/v1/renew": "POST", "/v1/settle": "POST", "/throttle": "POST",
		"/v1/show/k": "GET, HEAD", "/v1/openapi.json": "GET, HEAD",
	} {
		w := httptest.NewRecorder()
		a.Page(path)(w, httptest.NewRequest("PUT", path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow {
			t.Errorf("%s: %d, Allow: %s", path, w.Code, w.Header().Get("Allow"))
		}
	}
	for kind, want := range map[string]int{
		"application/json; charset=utf-8": 400, "Application/JSON": 400, "application/json;": 400, "text/plain": 415, "": 415,
	} {
		r := httptest.NewRequest("POST", "/v1/take", strings.NewReader("{}"))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if a.Page("/v1/take")(w, r); w.Code != want {
			t.Errorf("%q: %d", kind, w.Code)
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/take/", "/v1/show", "/v2/take", "/throttle/"} {
		if a.Page(path) != nil {
			t.Errorf("%s is served", path)
		}
	}
}

// A call waits for its turn, and leaves the line when its client goes.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clock.New()
		a := newAPI(t, clock.NowNS)
		const take = `{"key":"k","limits":["1/10s"],"mode":"wait","max_ms":60000}`
		begun := time.Now()
		for i, want := range []int{0, 10, 20} {
			w := a.ask(t, "/v1/take", take)
			if took := int(time.Since(begun).Seconds()); took != want || !strings.HasPrefix(w.Body.String(), `{"allowed":true,`) {
				t.Errorf("call %d: after %d s, want %d: %s", i, took, want, w.Body)
			}
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/take", strings.NewReader(take))
		r.Header.Set("Content-Type", "application/json")
		a.Page("/v1/take")(httptest.NewRecorder(), r)
		if took := int(time.Since(begun).Seconds()); took != 21 {
			t.Errorf("whose client has gone waits until %d s", took)
		}
		celldtest.Pass(9 * time.Second)
		if w := a.ask(t, "/v1/take", take); int(time.Since(begun).Seconds()) != 30 {
			t.Errorf("who has gone still stands in line: %s", w.Body)
		}
	})
}

// openapi.json describes what is served: each answer of the conversation, and each request that is answered with 200, is as it says; and
// all that it describes is asked for.
func TestOpenAPI(t *testing.T) {
	a := newConversation(t)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	check := func(pointer, text string) error {
		schema, err := compiler.Compile("openapi.json#" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	unasked := map[string]bool{}
	paths := doc.(map[string]any)["paths"].(map[string]any)
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			unasked[method+" "+path] = true
		}
		if a.Page(strings.Replace(path, "{key}", "k", 1)) == nil {
			t.Errorf("%s is described and not served", path)
		}
	}
	for _, c := range append(conversation, struct {
		path, body string
		status     int
		want       string
	}{"/v1/openapi.json", "", 200, ""}) {
		w := a.ask(t, c.path, c.body)
		path, method := strings.TrimSuffix(strings.TrimSuffix(c.path, "?status=429"), "?status=500"), "post"
		if strings.HasPrefix(path, "/v1/show/") {
			path = "/v1/show/{key}"
		}
		if c.body == "" {
			method = "get"
		}
		delete(unasked, method+" "+path)
		at := "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method
		if method == "post" {
			switch err := check(at+"/requestBody/content/application~1json/schema", c.body); {
			case w.Code < 300 && err != nil:
				t.Errorf("%s %s: %v", path, c.body, err)
			case strings.Contains(c.want, "an unknown field") && err == nil, strings.Contains(c.want, "is missing") && err == nil:
				t.Errorf("%s %s: it says that this is well formed", path, c.body)
			}
		}
		kind := strings.ReplaceAll(w.Header().Get("Content-Type"), "/", "~1")
		if err := check(fmt.Sprintf("%s/responses/%d/content/%s/schema", at, w.Code, kind), w.Body.String()); err != nil {
			t.Errorf("%s %.300s: %s: %v", path, c.body, w.Body, err)
		}
	}
	for what := range unasked {
		t.Errorf("%s is described and not asked for", what)
	}
}
