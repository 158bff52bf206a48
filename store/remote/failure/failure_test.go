package failure

import (
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
)

const atNS int64 = 1_700_000_000_000_000_000

var (
	unsent = &link.DownError{Cause: "a test says so"}
	sent   = &link.DownError{Cause: "a test says so", Sent: true}
)

func bucketOf(t testing.TB, maxBurst, count, period int64) cell.Bucket {
	t.Helper()
	b, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// alone is a Decider with what --store-failure says.
func alone(t testing.TB, failures string) *Decider {
	t.Helper()
	m, err := Parse(failures)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Modes: m, Policies: &policy.Set{}, Counts: &Counts{}, Log: slog.New(slog.DiscardHandler),
		NewID: func(us int64) uint64 { return uint64(us) }})
}

// callsOf are pairs of a key and a limit, which is a literal or a policy of the Store.
func (s *Decider) callsOf(t testing.TB, pairs ...string) (calls []store.Call) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		c := store.Call{Key: []byte(pairs[i])}
		if name, ok := strings.CutPrefix(pairs[i+1], "@"); ok {
			p := s.options.Policies.Policy([]byte(name))
			c.Limit, c.Policy = &p.Limits[0].Limit, p.Limits[0]
		} else {
			l, err := cell.ParseLimit(pairs[i+1])
			if err != nil {
				t.Fatal(err)
			}
			c.Limit = &l
		}
		calls = append(calls, c)
	}
	return calls
}

func TestThrottleOfEachMode(t *testing.T) {
	full := cell.Decision{Limit: 16, Remaining: 16, RetryAfterNS: cell.Never}
	denied := cell.Decision{Limited: true, Limit: 16, RetryAfterNS: 1e9, ResetAfterNS: 1e9}
	for _, quantity := range []int64{1, 0, 16, 17, -1} {
		for _, cause := range []*link.DownError{unsent, sent} {
			for mode, want := range map[string]cell.Decision{"error": {}, "allow": full, "deny": denied} {
				s := alone(t, mode)
				r := store.Request{Key: []byte("k"), Bucket: bucketOf(t, 15, 30, 60), Quantity: quantity, Err: errors.New("before"),
					Decision: cell.Decision{Limit: 5}}
				s.Throttle(&r, cause, store.Access{NowNS: atNS})
				if r.Decision != want || (r.Err == error(cause)) != (mode == "error") || (r.Err == nil) != (mode != "error") {
					t.Errorf("%s, quantity %d: %+v, %v", mode, quantity, r.Decision, r.Err)
				}
				if without, refused := s.options.Counts.DecidedWithout.Load(), s.options.Counts.Refused.Load(); without+refused != 1 ||
					(refused == 1) != (mode == "error") {
					t.Errorf("%s: %d decided without, %d refused", mode, without, refused)
				}
			}
		}
	}
}

func TestTakeOfEachMode(t *testing.T) {
	allowed := store.Taken{Granted: 1, RetryAfterNS: cell.Never}
	denied := store.Taken{Limited: true, RetryAfterNS: 1e9, ResetAfterNS: 1e9}
	granting := func(n int64) store.Taken { return store.Taken{Granted: n, RetryAfterNS: cell.Never} }
	for _, c := range []struct {
		name        string
		pairs       []string
		options     store.TakeOptions
		allow, deny store.Taken
	}{
		{"CL.TAKE", []string{"k", "10/1m"}, store.TakeOptions{Cost: 1}, allowed, denied},
		{"COST 3", []string{"k", "10/1m,algo=log"}, store.TakeOptions{Cost: 3}, granting(3), denied},
		{"COST 11", []string{"k", "10/1m,algo=window"}, store.TakeOptions{Cost: 11}, granting(11), denied},
		{"COST 0", []string{"k", "10/1m"}, store.TakeOptions{Mode: cell.Peek}, granting(0), denied},
		{"PEEK", []string{"k", "10/1m"}, store.TakeOptions{Cost: 1, Mode: cell.Peek}, granting(0), denied},
		{"UPTO", []string{"k", "10/1m"}, store.TakeOptions{Cost: 5, UpTo: true}, granting(5), denied},
		{"FORCE", []string{"k", "10/1m"}, store.TakeOptions{Cost: 2, Mode: cell.Force}, granting(2), denied},
		{"CL.GIVE", []string{"k", "10/1m"}, store.TakeOptions{Cost: -2}, granting(0), granting(0)},
		{"CL.THROTTLE that gives back", []string{"k", "10/1m"}, store.TakeOptions{Cost: -2, Look: true}, granting(0), denied},
		{"several limits", []string{"k", "10/1m", "k", "2/1s,algo=slide"}, store.TakeOptions{Cost: 1}, allowed, denied},
		{"CL.MTAKE", []string{"a", "10/1m", "b", "3/1h", "c", "5/1s"}, store.TakeOptions{Cost: 1}, allowed, denied},
		{"WAIT", []string{"k", "10/1m"}, store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e9}}, allowed, denied},
		{"RESERVE", []string{"k", "10/1m"}, store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Reserve, MaxNS: 1e9}}, allowed, denied},
		{"LEASE", []string{"k", "10/1m"}, store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: 1e9}}, allowed, denied},
		{"algo=conc", []string{"k", "10/1m,algo=conc"}, store.TakeOptions{Cost: 1, Terms: &store.Terms{Name: "n"}}, allowed, denied},
	} {
		for mode, want := range map[string]store.Taken{"error": {}, "allow": c.allow, "deny": c.deny} {
			s := alone(t, mode)
			r := store.TakeRequest{Calls: s.callsOf(t, c.pairs...), TakeOptions: c.options, Taken: store.Taken{Granted: 77},
				Err: errors.New("before")}
			if c.options.Terms != nil {
				terms := *c.options.Terms
				terms.Lease, terms.WaitNS = 77, 77
				r.Terms = &terms
			}
			s.Take(&r, sent, store.Access{NowNS: atNS})
			if (r.Err == error(sent)) != (mode == "error") || (r.Err == nil) != (mode != "error") || !reflect.DeepEqual(r.Taken, want) {
				t.Errorf("%s, %s: %+v, %v, want %+v", mode, c.name, r.Taken, r.Err, want)
			}
			if without, refused := s.options.Counts.DecidedWithout.Load(), s.options.Counts.Refused.Load(); without+refused != 1 ||
				(refused == 1) != (mode == "error") {
				t.Errorf("%s, %s: %d decided without, %d refused", mode, c.name, without, refused)
			}
			if mode == "error" || c.options.Cost < 0 && !c.options.Look {
				continue
			}
			if r.Terms != nil && (r.Terms.Lease != 0 || r.Terms.WaitNS != 0) {
				t.Errorf("%s, %s: lease %d, to wait %d ns", mode, c.name, r.Terms.Lease, r.Terms.WaitNS)
			}
			for i := range r.Calls {
				capacity := r.Calls[i].Limit.Capacity()
				each := cell.Decision{Limit: capacity, Remaining: capacity, RetryAfterNS: cell.Never}
				if mode == "deny" {
					each = cell.Decision{Limited: true, Limit: capacity, RetryAfterNS: 1e9, ResetAfterNS: 1e9}
				}
				if r.Calls[i].Decision != each || !r.Calls[i].Ruled {
					t.Errorf("%s, %s, call %d: %+v", mode, c.name, i, r.Calls[i].Decision)
				}
			}
		}
	}
}

// A limit with shadow limits nobody, and does not bind beside another.
func TestShadowWhileTheEngineIsAway(t *testing.T) {
	for _, c := range []struct {
		mode    string
		pairs   []string
		limited bool
		binding int
	}{
		{"deny", []string{"k", "10/1m,shadow"}, false, 0},
		{"deny", []string{"k", "10/1m,shadow", "k", "5/1h"}, true, 1},
		{"allow", []string{"k", "10/1m,shadow", "k", "5/1h"}, false, 1},
	} {
		s := alone(t, c.mode)
		r := store.TakeRequest{Calls: s.callsOf(t, c.pairs...), TakeOptions: store.TakeOptions{Cost: 1}}
		s.Take(&r, unsent, store.Access{NowNS: atNS})
		if r.Taken.Limited != c.limited || r.Taken.Binding != c.binding || r.Calls[0].Decision.Limited != (c.mode == "deny") {
			t.Errorf("%s, %q: %+v", c.mode, c.pairs, r.Taken)
		}
	}
}

// What is not about the engine's absence is an error in every mode.
func TestErrorsOfEveryMode(t *testing.T) {
	for _, mode := range []string{"error", "allow", "deny", "local"} {
		for _, cause := range []error{store.ErrFull, store.ErrWrongType, link.ErrBusy, store.ErrTwoLimits} {
			s := alone(t, mode)
			throttle := store.Request{Key: []byte("k"), Bucket: bucketOf(t, 15, 30, 60), Quantity: 1}
			s.Throttle(&throttle, cause, store.Access{NowNS: atNS})
			take := store.TakeRequest{Calls: s.callsOf(t, "k", "10/1m"), TakeOptions: store.TakeOptions{Cost: 1}}
			s.Take(&take, cause, store.Access{NowNS: atNS})
			if throttle.Err != cause || take.Err != cause || s.options.Counts.DecidedWithout.Load()+s.options.Counts.Refused.Load() != 0 {
				t.Errorf("%s, %v: %v, %v", mode, cause, throttle.Err, take.Err)
			}
		}
	}
}

// Rules are this process's, and decide as ever: DENY first.
func TestRulesWhileTheEngineIsAway(t *testing.T) {
	const yes, no, failed = 1, -1, 0
	for _, c := range []struct {
		pairs                     []string
		error, allow, deny, local int
	}{
		{[]string{"good", "2/1m"}, yes, yes, yes, yes},
		{[]string{"bad", "2/1m"}, no, no, no, no},
		{[]string{"other", "2/1m"}, failed, yes, no, yes},
		{[]string{"good", "2/1m", "other", "2/1m"}, failed, yes, no, yes},
		{[]string{"other", "2/1m", "bad", "2/1m"}, no, no, no, no},
		{[]string{"good", "2/1m", "ip:10.1.2.3", "2/1m"}, yes, yes, yes, yes},
	} {
		for mode, want := range map[string]int{"error": c.error, "allow": c.allow, "deny": c.deny, "local": c.local} {
			s := alone(t, mode)
			for _, rule := range []policy.Rule{{Pattern: "good"}, {Deny: true, Pattern: "bad"},
				{Pattern: "ip:", Net: netip.MustParsePrefix("10.0.0.0/8")}} {
				if _, err := s.options.Policies.PutRule(rule, atNS); err != nil {
					t.Fatal(err)
				}
			}
			r := store.TakeRequest{Calls: s.callsOf(t, c.pairs...), TakeOptions: store.TakeOptions{Cost: 1}}
			s.Take(&r, sent, store.Access{NowNS: atNS})
			got := yes
			if r.Err != nil {
				got = failed
			} else if r.Taken.Limited {
				got = no
			}
			if got != want || got == yes && r.Taken.Granted != 1 {
				t.Errorf("%s, %q: %+v, %v", mode, c.pairs, r.Taken, r.Err)
			}
			for i := range r.Calls {
				if d := r.Calls[i].Decision; r.Err == nil && d.Limited && string(r.Calls[i].Key) == "good" || d.Limit != 0 && d.Limited &&
					string(r.Calls[i].Key) == "bad" {
					t.Errorf("%s, %q: %+v", mode, c.pairs, d)
				}
			}
		}
	}
}

// A rule sees addresses there, too, also in the table that decides locally.
func TestRulesSeeAddressesWhileTheEngineIsAway(t *testing.T) {
	for _, mode := range []string{"error", "allow", "deny", "local"} {
		s := alone(t, mode)
		if _, err := s.options.Policies.PutRule(policy.Rule{Net: netip.MustParsePrefix("10.0.0.0/8")}, atNS); err != nil {
			t.Fatal(err)
		}
		for _, pairs := range [][]string{{"k", "1/1m"}, {"k", "1/1m", "other", "1/1m"}} {
			for range 2 {
				r := store.TakeRequest{Calls: s.callsOf(t, pairs...), TakeOptions: store.TakeOptions{Cost: 1}}
				r.Calls[0].Seen = &policy.Seen{Addresses: [][]byte{[]byte("10.1.2.3")}}
				s.Take(&r, sent, store.Access{NowNS: atNS})
				if d := r.Calls[0].Decision; (len(pairs) == 2 || mode == "local") && (d.Limited || d.Remaining != 1) {
					t.Errorf("%s, %q: %+v, %v", mode, pairs, d, r.Err)
				}
			}
		}
	}
}

// What is given back is no call that a rule could decide on.
func TestGiveUnderARuleWhileTheEngineIsAway(t *testing.T) {
	s := alone(t, "error")
	if _, err := s.options.Policies.PutRule(policy.Rule{Deny: true, Pattern: "bad"}, atNS); err != nil {
		t.Fatal(err)
	}
	r := store.TakeRequest{Calls: s.callsOf(t, "bad", "2/1m"), TakeOptions: store.TakeOptions{Cost: -1}}
	if s.Take(&r, sent, store.Access{NowNS: atNS}); r.Err != error(sent) {
		t.Errorf("%+v, %v", r.Taken, r.Err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"error": "error", "allow": "allow", "deny": "deny", "local": "local",
		"local,login=deny,api=allow": "local,api=allow,login=deny", "error,a=b=deny": "error,a=b=deny",
		"deny,api:cust42=local": "deny,api:cust42=local",
		"local,@api=deny":       "local,api=deny",
	} {
		if f, err := Parse(text); err != nil || f.String() != want {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	for text, want := range map[string]string{
		"":                           "argument must be error, allow, deny or local, not ''",
		"Error":                      "argument must be error, allow, deny or local, not 'Error'",
		"allow,":                     "argument must continue with policy=mode, not ''",
		"allow,deny":                 "argument must continue with policy=mode, not 'deny'",
		"allow,=deny":                "argument must continue with policy=mode, not '=deny'",
		"allow,api=":                 "argument must be error, allow, deny or local, not ''",
		"allow,api=never":            "argument must be error, allow, deny or local, not 'never'",
		"allow,api=deny,api=deny":    "argument has the policy 'api' twice",
		"api=deny":                   "argument must be error, allow, deny or local, not 'api=deny'",
		"allow,api=deny,login =deny": "argument must continue with policy=mode, not 'login =deny'",
		"allow, api=deny":            "argument must continue with policy=mode, not ' api=deny'",
		"allow,@=deny":               "argument must continue with policy=mode, not '@=deny'",
		"allow,api=deny,@api=deny":   "argument has the policy 'api' twice",
	} {
		if f, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
	if (Modes{}).String() != "error" {
		t.Errorf("the zero value is %v", Modes{})
	}
}

// A policy's mode holds for calls under it and under those that fall back to it. Of several limits the strictest holds.
func TestModesOfPolicies(t *testing.T) {
	s := alone(t, "error")
	for _, name := range []string{"api", "api:cust42", "login", "plain", "sms", "strict"} {
		l, _ := cell.ParseLimit("10/1m")
		if _, err := s.options.Policies.SetPolicy(name, []cell.Limit{l}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	modes, err := Parse("local,api=allow,login=deny,strict=error,nobody=deny")
	if err != nil {
		t.Fatal(err)
	}
	s.SetModes(modes)
	for _, c := range []struct {
		limits string
		want   Mode
	}{
		{"10/1m", Local}, {"@plain", Local}, {"@api", Allow}, {"@api:cust42", Allow}, {"@api:other", Allow}, {"@login", Deny},
		{"@strict", Error}, {"@api @api:cust42", Allow}, {"@api 10/1m", Local}, {"@api @login", Deny}, {"@login @plain", Deny},
		{"@login @strict @api", Error},
	} {
		var pairs []string
		for limit := range strings.FieldsSeq(c.limits) {
			pairs = append(pairs, "k", limit)
		}
		if mode := s.modeOf(s.callsOf(t, pairs...)); mode != c.want {
			t.Errorf("%s: %v, want %v", c.limits, mode, c.want)
		}
	}
	r := store.TakeRequest{Calls: s.callsOf(t, "k", "@login"), TakeOptions: store.TakeOptions{Cost: 1}}
	if s.Take(&r, sent, store.Access{NowNS: atNS}); r.Err != nil || !r.Taken.Limited {
		t.Errorf("%+v, %v", r.Taken, r.Err)
	}
	s.SetModes(Modes{All: Allow})
	if s.Take(&r, sent, store.Access{NowNS: atNS}); r.Err != nil || r.Taken.Limited {
		t.Errorf("it was changed, and then: %+v, %v", r.Taken, r.Err)
	}
}
