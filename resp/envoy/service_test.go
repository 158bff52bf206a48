package envoy

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/resp/door"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/message"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/policy"
)

// limits is a domain of a descriptor for each line: its key, and the rest of it.
func limits(lines ...string) string {
	text := "domain: d\ndescriptors:\n"
	for _, line := range lines {
		key, rest, _ := strings.Cut(line, " ")
		text += "- {key: " + key + ", " + rest + "}\n"
	}
	return text
}

// ask1 asks for descriptors of one entry each, such as "a=x hits=3 negative". It returns the code, and of each status what is left of how
// much: "OK 4/5, OVER 0/3".
func (w *world) ask1(descriptors ...string) string {
	q := &message.Request{Domain: "d"}
	for _, text := range descriptors {
		words := strings.Fields(text)
		key, value, _ := strings.Cut(words[0], "=")
		d := message.Descriptor{Entries: []message.Entry{{Key: key, Value: value}}}
		for _, word := range words[1:] {
			var n uint64
			switch {
			case word == "negative":
				d.Negative = true
			case strings.HasPrefix(word, "hits="):
				fmt.Sscanf(word, "hits=%d", &n)
				d.Hits = &n
			case strings.HasPrefix(word, "limit="):
				d.Limit = &message.Limit{Unit: message.Minute}
				fmt.Sscanf(word, "limit=%d", &d.Limit.Requests)
			}
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	answer, err := w.service.ask(q)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSuffix(answer.Code.String(), "_LIMIT") + ":"
	for _, s := range answer.Statuses {
		text += " " + strings.TrimSuffix(s.Code.String(), "_LIMIT")
		if s.Limit != nil {
			text += fmt.Sprintf(" %d/%d", s.Remaining, s.Limit.Requests)
		} else if s.Remaining != 0 {
			text += " unlimited"
		}
	}
	return text
}

// steps are asked one after the other: descriptors joined by a comma, and what they get.
type steps [][2]string

func (w *world) play(t *testing.T, all steps) {
	t.Helper()
	for i, step := range all {
		if got := w.ask1(strings.Split(step[0], ", ")...); got != step[1] {
			t.Errorf("step %d, %s: got %s, want %s", i+1, step[0], got, step[1])
		}
	}
}

const mostHits = "hits=18446744073709551615"

func TestAnswers(t *testing.T) {
	for name, of := range map[string]struct {
		options Options
		limits  []string
		steps   steps
	}{
		"counters count also over the limit": {limits: []string{"a rate_limit: {unit: minute, requests_per_unit: 3}"}, steps: steps{
			{"a=x hits=2", "OK: OK 1/3"}, {"a=x hits=2", "OVER: OVER 0/3"}, {"a=x hits=0", "OVER: OVER 0/3"}, {"a=y hits=3", "OK: OK 0/3"},
			{"a=y hits=0", "OK: OK 0/3"}, {"a=z hits=0", "OK: OK 3/3"}, {"a=z, a=z", "OK: OK 2/3 OK 1/3"},
		}},
		"hits are given back": {limits: []string{"a rate_limit: {unit: minute, requests_per_unit: 3}"}, steps: steps{
			{"a=x hits=5", "OVER: OVER 0/3"}, {"a=x hits=1 negative", "OK: OK 0/3"}, {"a=x hits=0", "OVER: OVER 0/3"},
			{"a=x hits=3 negative", "OK: OK 2/3"}, {"a=x hits=9 negative", "OK: OK 3/3"},
			{"a=y negative", "OK: OK 3/3"}, {"a=x", "OK: OK 2/3"},
			{"a=x " + mostHits + " negative", "OK: OK 3/3"},
		}},
		"more hits than can be counted": {limits: []string{"a rate_limit: {unit: minute, requests_per_unit: 3}",
			"s rate_limit: {unit: minute, requests_per_unit: 3, algorithm: slide}"}, steps: steps{
			{"a=x " + mostHits, "OVER: OVER 0/3"}, {"a=x", "OVER: OVER 0/3"}, {"a=y", "OK: OK 2/3"}, {"a=y " + mostHits, "OVER: OVER 0/3"},
			{"s=x " + mostHits, "OVER: OVER 0/3"}, {"s=x", "OK: OK 2/3"},
		}},
		"a count of 0": {limits: []string{"a rate_limit: {unit: minute}", "s rate_limit: {unit: minute, algorithm: slide}",
			"g rate_limit: {unit: minute, algorithm: gcra}", "l rate_limit: {unit: minute, algorithm: log}",
			"w rate_limit: {unit: minute, algorithm: window}"}, steps: steps{
			{"a=x", "OVER: OVER 0/0"}, {"a=y hits=0", "OK: OK 0/0"}, {"a=y negative", "OK: OK 0/0"},
			{"s=x", "OVER: OVER 0/0"}, {"s=x hits=0", "OK: OK 0/0"}, {"s=x negative", "OK: OK 0/0"},
			{"g=x", "OVER: OVER 0/0"}, {"l=x", "OVER: OVER 0/0"}, {"w=x", "OVER: OVER 0/0"},
		}},
		"limits that calls bring along": {limits: []string{"a rate_limit: {unit: minute, requests_per_unit: 3}",
			"u rate_limit: {unlimited: true}"}, steps: steps{
			{"a=x limit=1", "OK: OK 0/1"}, {"a=x", "OK: OK 1/3"}, {"a=x limit=1", "OVER: OVER 0/1"}, {"a=x limit=9", "OK: OK 5/9"},
			{"u=x limit=0", "OVER: OVER 0/0"}, {"none=x limit=2", "OK: OK 1/2"}, {"none=x", "OK: OK"}, {"u=x", "OK: OK unlimited"},
		}},
		"replaced": {limits: []string{"a rate_limit: {unit: minute, requests_per_unit: 1, name: n}",
			"b rate_limit: {unlimited: true, replaces: [{name: n}]}",
			"c rate_limit: {unit: minute, requests_per_unit: 5, replaces: [{name: n}]}",
		}, steps: steps{
			{"a=x, b=x", "OK: OK OK unlimited"}, {"c=x, a=x", "OK: OK 4/5 OK"}, {"a=x", "OK: OK 0/1"}, {"a=x", "OVER: OVER 0/1"},
			{"a=x, a=x, b=y", "OK: OK OK OK unlimited"},
		}},
		"quotas and shadow": {limits: []string{"q quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}",
			"r quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}",
			"s shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}"}, steps: steps{
			{"q=x, r=x", "OK: OK 0/1 OK 1/2"}, {"q=x, r=x", "OK: OVER 0/1 OK 0/2"}, {"q=x, r=x", "OVER: OVER 0/1 OVER 0/2"},
			{"s=x", "OK: OK 0/1"}, {"s=x", "OK: OK 0/1"}, {"s=x, q=x", "OVER: OK 0/1 OVER 0/1"},
		}},
		"all in shadow": {options: Options{Shadow: true}, limits: []string{"a rate_limit: {unit: minute}"}, steps: steps{
			{"a=x", "OK: OVER 0/0"},
		}},
		"all are quotas": {options: Options{Quota: true}, limits: []string{"a rate_limit: {unit: minute}"}, steps: steps{
			{"a=x", "OVER: OVER 0/0"}, {"a=x, none=x", "OK: OVER 0/0 OK"},
		}},
		"algorithms": {limits: []string{"g rate_limit: {unit: minute, requests_per_unit: 3, algorithm: 'gcra,burst=4'}",
			"s rate_limit: {unit: minute, requests_per_unit: 3, algorithm: slide}",
			"l rate_limit: {unit: minute, requests_per_unit: 3, algorithm: log}",
			"w rate_limit: {unit: minute, requests_per_unit: 3, algorithm: window}",
			"p rate_limit: {algorithm: '@gold'}", "m rate_limit: {algorithm: '@missing'}"}, steps: steps{
			{"g=x hits=4", "OK: OK 0/3"}, {"g=x", "OVER: OVER 0/3"}, {"g=y hits=5", "OVER: OVER 0/3"}, {"g=y hits=0", "OK: OK 4/3"},
			{"s=x hits=4", "OVER: OVER 0/3"}, {"s=x hits=2", "OK: OK 1/3"}, {"s=x hits=1 negative", "OK: OK 2/3"},
			{"l=x hits=4", "OVER: OVER 0/3"}, {"l=x hits=2", "OK: OK 1/3"}, {"w=x hits=4", "OVER: OVER 0/3"}, {"w=x hits=2", "OK: OK 1/3"},
			{"p=x", "OK: OK 1/2"}, {"p=x hits=2", "OVER: OVER 0/2"}, {"p=x", "OK: OK 0/2"}, {"p=x", "OVER: OVER 0/2"},
			{"m=x", "FAILED_PRECONDITION: there is no policy 'missing', which the configuration names"},
			{"p=z, m=x", "FAILED_PRECONDITION: there is no policy 'missing', which the configuration names"},
			{"p=z", "OK: OK 1/2"}, // nothing was taken before
		}},
		"all or none": {options: Options{AllOrNone: true}, limits: []string{
			"a rate_limit: {unit: minute, requests_per_unit: 3}",
			"b rate_limit: {unit: minute, requests_per_unit: 1}", "z rate_limit: {unit: minute}",
			"s shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}",
			"q quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}", "p rate_limit: {algorithm: '@gold'}",
			"ps shadow_mode: true, rate_limit: {algorithm: '@gold'}", "zs shadow_mode: true, rate_limit: {unit: minute}",
			"qm quota_mode: true, rate_limit: {algorithm: '@missing'}"}, steps: steps{
			{"a=x, b=x", "OK: OK 2/3 OK 0/1"}, {"a=x, b=x", "OVER: OK 2/3 OVER 0/1"}, {"a=x, b=x hits=0", "OK: OK 1/3 OK 0/1"},
			{"a=x, z=x", "OVER: OK 1/3 OVER 0/0"}, {"a=x hits=2", "OVER: OVER 0/3"}, {"a=x, a=x", "OVER: OK 1/3 OVER 0/3"},
			{"a=x", "OK: OK 0/3"}, {"a=x hits=1 negative", "OK: OK 1/3"}, {"a=x", "OK: OK 0/3"},
			{"s=x, a=y", "OK: OK 0/1 OK 2/3"}, {"s=x, a=y", "OK: OK 0/1 OK 1/3"}, // a limit in shadow stops nothing
			{"q=x, a=x", "OVER: OK 1/1 OVER 0/3"}, {"q=x, a=y", "OK: OK 0/1 OK 0/3"}, {"q=x, q=y", "OK: OVER 0/1 OK 0/1"},
			{"p=x, a=z", "OK: OK 1/2 OK 2/3"}, {"p=x, b=x", "OVER: OK 1/2 OVER 0/1"}, {"p=x, a=z", "OK: OK 0/2 OK 1/3"},
			{"a=1 hits=2, b=1 hits=1", "OK: OK 1/3 OK 0/1"}, {"a=1 hits=1, b=2 hits=2", "OVER: OK 1/3 OVER 0/1"}, // each its own
			{"a=1 hits=1, a=1 hits=2", "OVER: OK 1/3 OVER 0/3"}, {"a=2 hits=1, a=2 hits=2", "OK: OK 2/3 OK 0/3"},
			{"p=1 hits=2, a=3 hits=1", "OK: OK 0/2 OK 2/3"}, {"p=1 hits=1, a=3 hits=2", "OVER: OVER 0/2 OK 2/3"},
			{"a=3 hits=2, b=3 hits=0, a=4 hits=1", "OK: OK 0/3 OK 1/1 OK 2/3"},
			{"s=1, z=x", "OVER: OK 1/1 OVER 0/0"}, {"s=1 hits=0", "OK: OK 1/1"}, // it takes with the others
			{"ps=1, z=x", "OVER: OK 1/2 OVER 0/0"}, {"ps=1 hits=0", "OK: OK 1/2"}, // a policy does not
			{"zs=1, q=1", "OK: OK 0/0 OK 0/1"}, {"z=1, q=2", "OVER: OVER 0/0 OK 1/1"}, {"z=1, q=1 negative", "OVER: OVER 0/0 OK 1/1"},
			{"a=5, qm=1", "FAILED_PRECONDITION: there is no policy 'missing', which the configuration names"},
			{"a=5 hits=0", "OK: OK 3/3"}, // nothing was taken before
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, of.options, limits(of.limits...))
			two, err := cell.ParseLimit("2/1m,algo=window")
			if err != nil {
				t.Fatal(err)
			}
			ten, err := cell.ParseLimit("10/1h,algo=slide")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.keys.SetPolicy("gold", []cell.Limit{two, ten}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			w.play(t, of.steps)
		})
	}
}

func TestManyLimits(t *testing.T) {
	for n, want := range map[int]string{
		128: "", 129: "INVALID_ARGUMENT: with all or none, a request has at most 128 limits",
	} {
		w := newWorld(t, Options{AllOrNone: true}, limits("a rate_limit: {unit: minute, requests_per_unit: 3}"))
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("a=%d", i))
		}
		if got := w.ask1(all...); !strings.HasPrefix(got, "OK: OK 2/3 OK 2/3") && got != want {
			t.Errorf("%d limits: %.200s", n, got)
		}
		one := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 3}"))
		if got, want := one.ask1(all...), "OK:"+strings.Repeat(" OK 2/3", n); got != want {
			t.Errorf("%d counters: %.200s", n, got)
		}
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 3}"))
	for request, want := range map[string]string{
		`{}`:             "INVALID_ARGUMENT: rate limit domain must not be empty",
		`{"domain":"d"}`: "INVALID_ARGUMENT: rate limit descriptor list must not be empty",
		`{"domain":"d","descriptors":[{},{"limit":{"requestsPerUnit":1}}]}`: "INVALID_ARGUMENT: descriptor 2: " +
			"the unit UNKNOWN of its limit is not known: expected SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
		`{"domain":"d","descriptors":[{"limit":{"unit":99}}]}`: "INVALID_ARGUMENT: descriptor 1: " +
			"the unit 99 of its limit is not known: expected SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
		`{"domain":"other","descriptors":[{"limit":{"unit":99}}]}`: `{"overallCode":"OK","statuses":[{"code":"OK"}]}`,
		`{"domain":"d","descriptors":[{}]}`:                        `{"overallCode":"OK","statuses":[{"code":"OK"}]}`,
	} {
		if got := w.json(request); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	w.err = errors.New("the engine is away")
	if got := w.ask1("a=x"); got != "UNAVAILABLE: the engine is away" {
		t.Errorf("got %s", got)
	}
	if got := w.ask1("none=x"); got != "OK: OK" { // nothing is asked
		t.Errorf("got %s", got)
	}
	w.options.AllOrNone, w.options.Quota = true, true // then all are asked in a second round
	if got := w.ask1("a=x"); got != "UNAVAILABLE: the engine is away" {
		t.Errorf("of quotas: got %s", got)
	}
	w.set.Store(nil)
	if got := w.ask1("a=x"); got != "FAILED_PRECONDITION: no rate limit configuration loaded: the log says why" {
		t.Errorf("got %s", got)
	}
	if w.stats.serviceErrors.Load() != 5 || w.stats.storeErrors.Load() != 2 {
		t.Errorf("counted %d and %d errors", w.stats.serviceErrors.Load(), w.stats.storeErrors.Load())
	}
}

// away decides as a process whose engine is away: for one of so many shares, as --store-failure local does.
type away struct {
	*world
	shares int64
}

func (a away) Decide(requests []store.TakeRequest, verdict func(i int) door.Verdict) error {
	for i := range requests {
		whole := requests[i].Calls
		calls, limits := make([]store.Call, len(whole)), make([]cell.Limit, len(whole))
		for j := range whole {
			limits[j] = whole[j].Limit.Share(a.shares)
			calls[j] = store.Call{Key: whole[j].Key, Limit: &limits[j], Policy: whole[j].Policy}
		}
		one := []store.TakeRequest{{Calls: calls, TakeOptions: requests[i].TakeOptions}}
		if err := a.world.Decide(one, func(int) door.Verdict { return door.Verdict{} }); err != nil {
			return err
		}
		requests[i].Taken, requests[i].Err = one[0].Taken, one[0].Err
		for j := range whole {
			d := calls[j].Decision
			d.Limit = whole[j].Limit.Capacity()
			whole[j].Answer(d)
		}
		verdict(i)
	}
	return nil
}

func TestShares(t *testing.T) {
	for shares, all := range map[int64]steps{
		1: {{"a=x hits=0", "OK: OK 40/40"}, {"a=x hits=39", "OK: OK 1/40"}, {"a=x hits=2", "OVER: OVER 0/40"}},
		4: {{"a=x hits=0", "OK: OK 10/40"}, {"a=x hits=9", "OK: OK 1/40"}, {"a=x hits=2", "OVER: OVER 0/40"},
			{"a=x hits=1 negative", "OK: OK 0/40"}},
		20: {{"a=x", "OK: OK 1/40"}, {"a=x", "OK: OK 0/40"}, {"a=x", "OVER: OVER 0/40"}, {"a=x " + mostHits, "OVER: OVER 0/40"}},

		// A share is 1 at least, except of nothing.
		1000: {{"a=x", "OK: OK 0/40"}, {"a=x", "OVER: OVER 0/40"}, {"z=x", "OVER: OVER 0/0"}, {"s=x", "OK: OK 0/40"}, {"s=x", "OVER: OVER 0/40"}},
	} {
		w := newWorld(t, Options{}, limits(
			"a rate_limit: {unit: minute, requests_per_unit: 40}", "z rate_limit: {unit: minute}",
			"s rate_limit: {unit: minute, requests_per_unit: 40, algorithm: slide}"))
		w.limits = away{w, shares}
		t.Run(fmt.Sprint(shares), func(t *testing.T) {
			w.play(t, all)
			// The call that passes is within the limit; all hits of the one that does not are over it.
			page := string(metrics.AppendText(nil, metrics.New().Read(0, w.stats.declare)))
			if want := `rate_limit_over_limit{domain="d",key1="a"} 2` + "\n"; shares == 4 && !strings.Contains(page, want) {
				t.Errorf("no %q in\n%s", want, page)
			}
		})
	}
}

func TestRules(t *testing.T) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 3}",
		"g rate_limit: {unit: minute, requests_per_unit: 3, algorithm: gcra}"))
	for pattern, deny := range map[string]bool{"envoy|d|a=bad*": true, "envoy|d|a=good": false} {
		if _, err := w.keys.PutRule(policy.Rule{Pattern: pattern, Deny: deny}, w.nowNS); err != nil {
			t.Fatal(err)
		}
	}
	w.play(t, steps{
		{"a=bad1", "OVER: OVER 0/3"}, {"a=bad1 negative", "OK: OK 0/3"}, {"a=good hits=9", "OK: OK 3/3"}, {"a=good hits=9", "OK: OK 3/3"},
		{"a=other, a=bad2", "OVER: OK 2/3 OVER 0/3"},
	})
	// A rule without an end says nothing of when to ask again: the window's end does, half a minute from now.
	// A bucket is full again 20 s after a call.
	for entry, want := range map[string]string{`{"key":"a","value":"bad1"}`: "30s", `{"key":"g","value":"x"}`: "20s"} {
		got := w.json(`{"domain":"d","descriptors":[{"entries":[` + entry + `]}]}`)
		if !strings.Contains(got, `"durationUntilReset":"`+want+`"`) {
			t.Errorf("%s: %s, want %s", entry, got, want)
		}
	}
}

// A rule for a net holds for the descriptor that has an address in it, whatever else that has, and for no other of the request.
func TestRulesSeeAddresses(t *testing.T) {
	const limit = "rate_limit: {unit: minute, requests_per_unit: 1}"
	for _, o := range []Options{{}, {AllOrNone: true}} {
		w := newWorld(t, o, limits("a "+limit, "remote_address "+limit, "address "+limit,
			"path descriptors: [{key: remote_address, "+limit+"}, {key: masked_remote_address, "+limit+"}]"))
		for net, deny := range map[string]bool{"10.0.0.0/8": false, "10.9.0.0/16": true, "2001:db8::/32": true} {
			if _, err := w.keys.PutRule(policy.Rule{Net: netip.MustParsePrefix(net), Deny: deny}, w.nowNS); err != nil {
				t.Fatal(err)
			}
		}
		w.play(t, steps{
			{"remote_address=10.1.2.5 hits=9", "OK: OK 1/1"}, {"remote_address=10.9.2.5", "OVER: OVER 0/1"},
			{"remote_address=2001:db8::7", "OVER: OVER 0/1"},
			{"remote_address=11.1.2.5", "OK: OK 0/1"}, {"remote_address=11.1.2.5", "OVER: OVER 0/1"},
			{"a=1, remote_address=10.1.2.5", "OK: OK 0/1 OK 1/1"}, {"a=1, remote_address=10.1.2.5", "OVER: OVER 0/1 OK 1/1"},
			{"a=2, a=3, remote_address=10.9.2.5", "OVER: OK 0/1 OK 0/1 OVER 0/1"},
			{"address=10.1.2.5", "OK: OK 0/1"}, {"address=10.1.2.5", "OVER: OVER 0/1"},
		}[:map[bool]int{false: 10, true: 5}[o.AllOrNone]])
		q := func(key, value string) string {
			entries := `{"key":"path","value":"/"},{"key":"` + key + `","value":"` + value + `"}`
			return w.json(`{"domain":"d","descriptors":[{"entries":[` + entries + `]}]}`)
		}
		for range 2 {
			if got := q("remote_address", "10.1.2.5") + q("masked_remote_address", "10.1.0.0/16"); strings.Contains(got, "OVER") {
				t.Error(got)
			}
			if got := q("masked_remote_address", "2001:db8:1:2::/64"); !strings.Contains(got, "OVER") {
				t.Error(got)
			}
		}
	}
}

// A counter is known by its limit, as CL.SHOW and files tell it, and by what it has counted beyond that. So whoever names this limit finds
// it: CL.EXPLAIN, and CL.GIVE. It counts on when the limit changes.
func TestCountersAreKnownByTheirLimits(t *testing.T) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 3}",
		"z rate_limit: {unit: minute, requests_per_unit: 0}"))
	shown := func(key string) (told string) {
		_, err := w.keys.Limits([]byte(key), store.Access{NowNS: w.nowNS}, func(l *store.LimitState) {
			d := l.Limit.Decide(&l.State, w.nowNS, 1, cell.Peek)
			told = fmt.Sprintf("%s: %d of %d, %v", &l.Limit, l.Limit.Used(&l.State, w.nowNS), d.Limit, d.Limited)
		})
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	w.play(t, steps{{"a=x hits=2", "OK: OK 1/3"}})
	if got := shown("envoy|d|a=x"); got != "3/1m,algo=window,align=clock: 2 of 3, false" {
		t.Error(got)
	}
	w.play(t, steps{{"a=x hits=5", "OVER: OVER 0/3"}, {"z=x", "OVER: OVER 0/0"}})
	if got := shown("envoy|d|a=x") + shown("envoy|d|z=x"); got !=
		"3/1m,algo=window,align=clock: 7 of 3, true1/1m,algo=window,align=clock: 1 of 1, true" {
		t.Error(got)
	}
	limit, err := cell.ParseLimit("3/1m,algo=window,align=clock")
	if err != nil {
		t.Fatal(err)
	}
	if given, err := w.keys.Give([]byte("envoy|d|a=x"), &limit, nil, 5, store.Access{NowNS: w.nowNS}); given != 5 || err != nil {
		t.Error(given, err)
	}
	w.play(t, steps{{"a=x", "OK: OK 0/3"}, {"a=x limit=9", "OK: OK 5/9"}, {"a=x", "OVER: OVER 0/3"}, {"a=x limit=9", "OK: OK 3/9"}})
	if got := shown("envoy|d|a=x"); got != "9/1m,algo=window,align=clock: 6 of 9, false" {
		t.Error(got)
	}
}

// TestKeys: two descriptors share a key only if they are the same. It has all that separates in keys.
func TestKeys(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a%|={}_7C\n\x00é*")), 0, 4, -1)
	descriptor := rapid.Custom(func(t *rapid.T) []string {
		return append([]string{text.Draw(t, "domain")}, rapid.SliceOfN(text, 0, 4).Draw(t, "texts")...)
	})
	key := func(texts []string, algorithm string, together bool) string {
		var entries []message.Entry
		for i := 1; i+1 < len(texts); i += 2 {
			entries = append(entries, message.Entry{Key: texts[i], Value: texts[i+1]})
		}
		return string(appendKey(nil, texts[0], entries, nil, algorithm, together))
	}
	algorithm := rapid.SampledFrom([]string{"", "slide", "@a=b|c"})
	plain := regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := descriptor.Draw(t, "a"), descriptor.Draw(t, "b")
		a, b = a[:(len(a)-1)/2*2+1], b[:(len(b)-1)/2*2+1]
		for _, together := range []bool{false, true} {
			algorithmA, algorithmB := algorithm.Draw(t, "algorithm of a"), algorithm.Draw(t, "algorithm of b")
			ofA, ofB := key(a, algorithmA, together), key(b, algorithmB, together)
			if (ofA == ofB) != (algorithmA == algorithmB && fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b)) {
				t.Fatalf("%q has the key %q, and %q has %q", a, ofA, b, ofB)
			}
			if !plain.MatchString(ofA) {
				t.Fatalf("%q has the key %q", a, ofA)
			}
		}
	})
	for want, got := range map[string]string{
		"envoy|shop|client=ann|path=/x": key([]string{"shop", "client", "ann", "path", "/x"}, "", false),
		"envoy|shop|a=b|gcra":           key([]string{"shop", "a", "b"}, "gcra,burst=5", false),
		"envoy|{sh%7Bop}|a%3Db=c=d":     key([]string{"sh{op", "a=b", "c=d"}, "", true),
		"envoy|d":                       key([]string{"d"}, "", false),
		"envoy|d|k=a%25*":               string(appendKey(nil, "d", []message.Entry{{Key: "k", Value: "x"}}, []string{"a%*"}, "", false)),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSeriesAreBounded(t *testing.T) {
	st := newStatistics()
	hit := &asked{hits: 1, shown: &message.Limit{Requests: 5}, after: 1}
	for i := range mostSeries + 500 {
		hit.Series = domains.Series{Domain: fmt.Sprintf("d%d", i), Key1: fmt.Sprint(i)}
		st.count(hit, 0.8)
		st.unknownDomain(fmt.Sprintf("u-%d", i))
	}
	if len(st.series) != mostSeries || len(st.unknown) != mostUnknown+1 {
		t.Errorf("%d series, and %d domains", len(st.series), len(st.unknown))
	}
	if n := st.series[domains.Series{Domain: "other", Key1: "other"}].total.Load(); n != 501 {
		t.Errorf("others have %d hits", n)
	}
	if n := st.unknown["other"].Load(); n != mostSeries+500-mostUnknown {
		t.Errorf("other domains were asked for %d times", n)
	}
	if got := nameOf("ü a.b-c_D9" + strings.Repeat("é", 100)); got != "__a_b_c_D9"+strings.Repeat("_", 27) {
		t.Errorf("a name is %s", got)
	}
}

// TestHitsAreSplit: a call's hits may lie on both sides of a bound.
func TestHitsAreSplit(t *testing.T) {
	for _, of := range []struct {
		before, hits              int
		total, over, near, within uint64
	}{
		{0, 1, 1, 0, 0, 1}, {0, 8, 8, 0, 0, 8}, {0, 9, 9, 0, 1, 9}, {0, 10, 10, 0, 2, 10}, {0, 15, 15, 5, 2, 0}, {8, 1, 1, 0, 1, 1},
		{9, 1, 1, 0, 1, 1}, {9, 3, 3, 2, 1, 0}, {10, 3, 3, 3, 0, 0}, {20, 1, 1, 1, 0, 0}, {0, 0, 0, 0, 0, 0},
	} {
		for _, shadow := range []bool{false, true} {
			line := fmt.Sprintf("a shadow_mode: %v, rate_limit: {unit: minute, requests_per_unit: 10}", shadow)
			w := newWorld(t, Options{}, limits(line))
			w.ask1(fmt.Sprintf("a=x hits=%d", of.before))
			w.stats.series = map[domains.Series]*seriesStats{}
			w.ask1(fmt.Sprintf("a=x hits=%d", of.hits), "a=x hits=1 negative")
			n := w.stats.of(domains.Series{Domain: "d", Key1: "a"})
			got := [5]uint64{n.total.Load(), n.over.Load(), n.near.Load(), n.within.Load(), n.shadow.Load()}
			want := [5]uint64{of.total, of.over, of.near, of.within}
			if shadow {
				want[4] = of.over
			}
			if got != want {
				t.Errorf("%d hits after %d, shadow %v: got %v, want %v", of.hits, of.before, shadow, got, want)
			}
		}
	}
}

// An algorithm's hits are near its limit as a counter's are; what is denied is over.
func TestHitsOfAnAlgorithmAreSplit(t *testing.T) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 10, algorithm: slide}"))
	w.ask1("a=x hits=9") // one of them is beyond 8
	w.ask1("a=x hits=2") // denied
	n := w.stats.of(domains.Series{Domain: "d", Key1: "a"})
	if got := [4]uint64{n.total.Load(), n.within.Load(), n.near.Load(), n.over.Load()}; got != [4]uint64{11, 9, 1, 2} {
		t.Errorf("total, within, near and over: %v", got)
	}
}

// A limit that gets another algorithm, or comes to be taken together with others, begins anew, and finds what was counted when it comes
// back. If it shared a state with the counter, whose count is 2^53, celld would scale what was used.
func TestAnotherAlgorithm(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"window": func(w *world) {
			w.configure(t, limits("a rate_limit: {unit: minute, requests_per_unit: 5, algorithm: 'window,align=clock'}"))
		},
		"together": func(w *world) { w.options.AllOrNone = true },
	} {
		counter := limits("a rate_limit: {unit: minute, requests_per_unit: 5}")
		w := newWorld(t, Options{}, counter)
		w.ask1("a=x hits=2")
		change(w)
		if got := w.ask1("a=x"); got != "OK: OK 4/5" {
			t.Errorf("%s: first %s", name, got)
		}
		w.options.AllOrNone = false
		w.configure(t, counter)
		if got := w.ask1("a=x"); got != "OK: OK 2/5" {
			t.Errorf("%s: then %s", name, got)
		}
	}
}

// What callers are told is what is counted.
func TestVerdicts(t *testing.T) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 1}",
		"s shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}", "p rate_limit: {algorithm: '@two'}"))
	var two []cell.Limit
	for _, text := range []string{"1/1h,shadow", "2/1m"} {
		limit, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		two = append(two, limit)
	}
	if _, err := w.keys.SetPolicy("two", two, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"[{false false} {false true} {false false}] OK: OK 0/1 OK 0/1 OK 1/2", // the first limit of the policy has less left
		"[{true false} {true true} {false false}] OVER: OVER 0/1 OK 0/1 OK 0/2",
		"[{true false} {true true} {true false}] OVER: OVER 0/1 OK 0/1 OVER 0/2", // but the second alone denies
	} {
		told := w.ask1("a=x", "s=x", "p=x")
		if got := fmt.Sprint(w.verdicts) + " " + told; got != want {
			t.Errorf("call %d: got %s, want %s", i+1, got, want)
		}
	}
}
