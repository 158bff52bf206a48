package limit

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"testing"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/decisions"
	"celld/resp/glob"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// refusing is a store that refuses changes with an error, and may have policies of which nobody knows.
type refusing struct {
	memory.Port
	err, unknown error
}

func (r *refusing) PoliciesUnknown() error { return r.unknown }

func (r *refusing) SetPolicy(name string, limits []cell.Limit, o policy.Options, done func(bool, error)) {
	if r.err != nil {
		done(false, r.err)
		return
	}
	r.Port.SetPolicy(name, limits, o, done)
}

func (r *refusing) DeletePolicy(name string, done func(bool, error)) {
	if r.err != nil {
		done(false, r.err)
		return
	}
	r.Port.DeletePolicy(name, done)
}

func (r *refusing) PutRule(rule policy.Rule, nowNS int64, done func(bool, error)) {
	if r.err != nil {
		done(false, r.err)
		return
	}
	r.Port.PutRule(rule, nowNS, done)
}

// counted is a host whose decisions and denied calls are counted.
func counted() (h *calltest.Host, s *refusing, server *Server) {
	policies := &policy.Set{}
	server = &Server{InForce: policies, Saved: func() {}, LogMax: 100, Decisions: decisions.NewRows(policies),
		Top: decisions.NewTop(policies), Now: func() int64 { return 1e12 }}
	h = calltest.New(memory.Options{Policies: policies}, Rows(func() Server { return *server })...)
	s = &refusing{Port: memory.Port{Store: h.Store}}
	server.Store = s
	return h, s, server
}

// CL.TOP HELP is no policy's name: that one has its @.
func TestHelpOfCounts(t *testing.T) {
	h, _, _ := counted()
	for call, want := range map[string]string{
		"CL.TOP help":    "*2\r\n+CL.TOP [RESET|[n] [policy] [BY DENIED|CALLS|NEAR] [LAST 1m|10m|START]]\r\n+    Returns the keys",
		"CL.STATS HELP":  "*2\r\n+CL.STATS [RESET|policy]\r\n+    Returns how",
		"CL.TOP reset p": fails(argument.ErrSyntax),
		"CL.TOP 5 help":  fails(argument.ErrNoPolicy, "help"), "CL.TOP @help": fails(argument.ErrNoPolicy, "help"),
	} {
		if got := h.Do(strings.Fields(call)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	h, s, _ := counted()
	wants(t, h, "CL.POLICY SET p 5/1s", ":1\r\n")
	s.unknown = errors.New("gone")
	down := fails(argument.ErrStoreDown, "gone")
	wants(t, h, "CL.POLICY GET p", "$4\r\n5/1s\r\n", "CL.POLICY GET q", down, "CL.TOP 5 q", down, "CL.STATS q", down,
		"CL.STATS @p", h.Do("CL.STATS", "p"))
	s.err = policy.ErrTooMany
	wants(t, h, "CL.POLICY SET q 5/1s", fails(ErrTooManyPolicies, policy.MaxPolicies),
		"CL.RULE ADD DENY k", fails(ErrTooManyRules, policy.MaxRules))
	s.err = errors.New("no reply")
	wants(t, h, "CL.POLICY SET q 5/1s", "-ERR no reply\r\n", "CL.POLICY DEL p", "-ERR no reply\r\n",
		"CL.RULE ADD DENY k", "-ERR no reply\r\n", "CL.RULE LIST", down, "CL.POLICY LIST q*", down,
		"CL.POLICY LIST", "*2\r\n$1\r\np\r\n$4\r\n5/1s\r\n")
}

// A name has 1 to 64 letters, digits and a few other characters.
func TestPolicyNames(t *testing.T) {
	long := strings.Repeat("n", 64)
	for arg, want := range map[string]string{
		"a": "a", "@a": "a", "a:b": "a:b", ":b": ":b", "Z9_-.": "Z9_-.", long: long, "@" + long: long,
	} {
		if name, problem := PolicyName([]byte(arg)); name != want || problem != "" {
			t.Errorf("%q: %q, %q", arg, name, problem)
		}
	}
	for _, arg := range []string{"", "@", "a b", "a\t", "\x7f", long + "n", "@@a", "a/b", "a@b", "a,b", "é", "\x80", "!"} {
		if name, problem := PolicyName([]byte(arg)); name != "" || !strings.HasPrefix(problem, "ERR invalid policy name '") ||
			!strings.HasSuffix(problem, "': expected 1 to 64 letters, digits, _, -, . and :") {
			t.Errorf("%q: %q, %q", arg, name, problem)
		}
	}
	for arg, name := range map[string]string{":": ":", "@x:": "x:"} {
		if _, problem := PolicyName([]byte(arg)); problem != fmt.Sprintf(errPolicyColon, name) {
			t.Errorf("%q: %q", arg, problem)
		}
	}
}

func TestListedNames(t *testing.T) {
	h, _, _ := counted()
	wants(t, h, "CL.POLICY SET b 6/1s", ":1\r\n",
		"CL.POLICY SET @a 5/1s", ":1\r\n", "CL.POLICY LIST", "*4\r\n$1\r\na\r\n$4\r\n5/1s\r\n$1\r\nb\r\n$4\r\n6/1s\r\n",
		"CL.POLICY LIST [a", "*2\r\n$1\r\na\r\n$4\r\n5/1s\r\n",
		"CL.POLICY LIST "+strings.Repeat("?", glob.MaxWild+1), fails(argument.ErrPatternLong, glob.MaxWild),
		"CL.RULE LIST "+strings.Repeat("?", glob.MaxWild+1), fails(argument.ErrPatternLong, glob.MaxWild),
		"CL.RULE LIST a b", fails(argument.ErrSyntax), "CL.POLICY DEL @a", ":1\r\n", "CL.POLICY LIST", "*2\r\n$1\r\nb\r\n$4\r\n6/1s\r\n",
		"CL.POLICY SET b 99/1s,algo=log XX", ":1\r\n", "CL.POLICY SET b 100/1s,algo=log", ":1\r\n",
		"CL.POLICY SET b x", "-ERR invalid limit: limit 'x': expected count/period, such as 100/1m\r\n",
		"CL.POLICY GET b", "$15\r\n100/1s,algo=log\r\n")
	h.RESP3 = true
	wants(t, h, "CL.POLICY LIST", "%1\r\n$1\r\nb\r\n$15\r\n100/1s,algo=log\r\n")
}

// RESET forgets what was used of a policy: it is a new one.
func TestPolicySetResets(t *testing.T) {
	h, _, server := counted()
	id := func() uint32 { return server.InForce.PolicyNamed("p").Limits[0].ID }
	wants(t, h, "CL.POLICY SET p 5/1s", ":1\r\n")
	first := id()
	if wants(t, h, "CL.POLICY SET p 6/1s", ":1\r\n"); id() != first {
		t.Error("a set without RESET is a new policy")
	}
	if wants(t, h, "CL.POLICY SET p 6/1s RESET", ":1\r\n"); id() == first {
		t.Error("RESET keeps the policy")
	}
}

// A rule holds for whole seconds, of which the list rounds up what is left.
func TestEndOfRules(t *testing.T) {
	h, _, _ := counted()
	most := (math.MaxInt64-h.NowNS)/1e9 - 1
	one := func(left int64) string {
		return fmt.Sprintf("*1\r\n*4\r\n$5\r\nALLOW\r\n$1\r\nk\r\n$0\r\n\r\n:%d\r\n", left)
	}
	wants(t, h, fmt.Sprint("CL.RULE ADD allow k EX ", most+1), fails(argument.ErrInvalidExpire, "cl.rule"),
		"CL.RULE ADD allow k EX -1", fails(argument.ErrInvalidExpire, "cl.rule"), fmt.Sprint("CL.RULE ADD allow k EX ", most), ":1\r\n",
		"CL.RULE LIST", one(most), "CL.RULE ADD allow k EX 1", ":0\r\n", "CL.RULE LIST k", one(1))
	h.NowNS++
	wants(t, h, "CL.RULE LIST", one(1))
	h.NowNS += 1e9 - 2
	wants(t, h, "CL.RULE LIST", one(1))
	h.NowNS++
	wants(t, h, "CL.RULE LIST", "*0\r\n", "CL.RULE DEL allow k", ":0\r\n", "CL.RULE ADD allow "+strings.Repeat("p", 256), ":1\r\n",
		"CL.RULE DEL other k", fails(errRuleVerdict, "other"), "CL.RULE DEL DENY "+strings.Repeat("p", 256), ":0\r\n",
		"CL.RULE ADD DENY k CIDR "+strings.Repeat("9", 200), fails(errRuleNet, strings.Repeat("9", 128)))
}

// CL.TOP tells of all denied calls, of a policy's or of the literals'.
func TestTop(t *testing.T) {
	h, _, server := counted()
	wants(t, h, "CL.POLICY SET p 5/1s", ":1\r\n")
	seed := maphash.MakeSeed()
	deny := func(n int, key string, policy uint32) {
		hash := maphash.String(seed, key)
		for range n {
			server.Top.Add([]decisions.Came{{N: 1, Hash: hash, Key: []byte(key), Policy: policy}})
		}
	}
	deny(3, "lit", 0)
	deny(2, "pol", server.InForce.PolicyNamed("p").Limits[0].ID)
	const lit, pol = "*2\r\n$3\r\nlit\r\n:3\r\n", "*2\r\n$3\r\npol\r\n:2\r\n"
	wants(t, h, "CL.TOP", "*2\r\n"+lit+pol, "CL.TOP 1", "*1\r\n"+lit, "CL.TOP 100", "*2\r\n"+lit+pol, "CL.TOP p", "*1\r\n"+pol,
		"CL.TOP @p", "*1\r\n"+pol, "CL.TOP literals", "*1\r\n"+lit, "CL.TOP 1 p", "*1\r\n"+pol,
		"CL.TOP @literals", fails(argument.ErrNoPolicy, "literals"), "CL.TOP 0", fails(argument.ErrNotBetween, 1, decisions.MostTop),
		"CL.TOP 101", fails(argument.ErrNotBetween, 1, decisions.MostTop),
		"CL.TOP x p", fails(argument.ErrNoPolicy, "x"), "CL.TOP 5 p p", fails(errTop), "CL.TOP p 5", fails(errTop),
		"CL.TOP by", fails(errTop), "CL.TOP BY last", fails(errTop), "CL.TOP LAST 1h", fails(errTop), "CL.TOP BY DENIED 5", fails(errTop),
		"CL.TOP RESET p", fails(argument.ErrSyntax))
	server.Top.Add([]decisions.Came{{By: decisions.ByCalls, N: 9, Hash: 5, Key: []byte("often")},
		{By: decisions.ByNear, N: 8, Hash: 6, Key: []byte("near")}})
	const often, near = "*1\r\n*2\r\n$5\r\noften\r\n:9\r\n", "*1\r\n*2\r\n$4\r\nnear\r\n:8\r\n"
	wants(t, h, "CL.TOP by calls", often, "CL.TOP 5 BY NEAR LAST 1m", near, "CL.TOP last 10M by near", near,
		"CL.TOP literals BY CALLS", often,
		"CL.TOP p BY CALLS", "*0\r\n", "CL.TOP 1 LAST START", "*1\r\n"+lit, "CL.POLICY SET by 5/1s", ":1\r\n", "CL.TOP @by", "*0\r\n")
	server.Now = func() int64 { return 1e12 + 120e9 } // two minutes later
	wants(t, h, "CL.TOP BY CALLS LAST 1m", "*0\r\n", "CL.TOP BY CALLS LAST 10m", often, "CL.TOP BY CALLS", often)
	for i := range 11 {
		deny(1, fmt.Sprint("k", i), 0)
	}
	if got := h.Do("CL.TOP"); !strings.HasPrefix(got, "*10\r\n"+lit+pol) {
		t.Errorf("CL.TOP: %q", got)
	}
	wants(t, h, "CL.TOP reset", "+OK\r\n", "CL.TOP", "*0\r\n")
}

// CL.STATS adds up calls of all commands, for the literals and for each policy.
func TestStats(t *testing.T) {
	h, _, server := counted()
	wants(t, h, "CL.POLICY SET literals 5/1s", ":1\r\n", "CL.POLICY SET p 5/1s", ":1\r\n")
	stats := func(bound string, n ...int) string {
		text := "*20\r\n"
		for i, name := range []string{
			"allowed", "limited", "blocked", "rule_denied", "shadow_limited", "shadow_allowed", "partly_granted", "limited_by_other",
			"near",
		} {
			text += fmt.Sprintf("$%d\r\n%s\r\n:%d\r\n", len(name), name, n[i])
		}
		return text + "$8\r\nbound_by\r\n" + bound
	}
	count := func(row *decisions.Row, n decisions.Counts) {
		var b decisions.Batch
		b.In(row, 0).Add(&n)
		b.Settle(0, nil)
	}
	count(server.Decisions.Of(server.InForce.PolicyNamed("p").Limits[0]),
		decisions.Counts{decisions.ThrottleAllowed: 1, decisions.TakeAllowed: 2, decisions.ThrottleLimited: 10, decisions.TakeLimited: 20,
			decisions.Blocked: 3, decisions.RuleDenied: 4, decisions.ShadowLimited: 5, decisions.ShadowAllowed: 6,
			decisions.PartlyGranted: 7, decisions.AlsoAllowed: 1, decisions.LimitedByOther: 8, decisions.Near: 2,
			decisions.AlsoRuleDenied: 1})
	count(server.Decisions.Literal(cell.GCRA), decisions.Counts{decisions.TakeAllowed: 9})
	p := stats("*2\r\n$7\r\ngcra/1s\r\n:26\r\n", 4, 30, 3, 5, 5, 6, 7, 8, 2)
	lit, none := stats("*0\r\n", 9, 0, 0, 0, 0, 0, 0, 0, 0), stats("*0\r\n", 0, 0, 0, 0, 0, 0, 0, 0, 0)
	reset := stats("*2\r\n$7\r\ngcra/1s\r\n:0\r\n", 0, 0, 0, 0, 0, 0, 0, 0, 0)
	wants(t, h, "CL.STATS p", p, "CL.STATS @p", p, "CL.STATS literals", lit, "CL.STATS @literals", none,
		"CL.STATS", "*6\r\n$8\r\nliterals\r\n"+lit+"$9\r\n@literals\r\n"+none+"$1\r\np\r\n"+p, "CL.STATS p p", fails(argument.ErrSyntax),
		"CL.STATS @none", fails(argument.ErrNoPolicy, "none"), "CL.STATS reset", "+OK\r\n", "CL.STATS p", reset)
}

// leasing notes what commands tell of leases, and may refuse them.
type leasing struct {
	*calltest.Host
	ended [][2]int64
	args  int
	err   error
}

func (l *leasing) LeaseEnds(id, endNS int64) { l.ended = append(l.ended, [2]int64{id, endNS}) }
func (l *leasing) Did(args, _ int)           { l.args += args }
func (l *leasing) Keys() command.Keys        { return leasedKeys{l.Host.Keys(), l.err} }

type leasedKeys struct {
	command.Keys
	err error
}

func (k leasedKeys) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	if k.err != nil {
		return false, k.err
	}
	return k.Keys.Renew(key, id, ns, a)
}

func (k leasedKeys) Settle(key []byte, id, n int64, a store.Access, of ...store.NamedCost) (bool, error) {
	if k.err != nil {
		return false, k.err
	}
	return k.Keys.Settle(key, id, n, a, of...)
}

func (k leasedKeys) Release(key []byte, id int64, a store.Access) (bool, error) {
	if k.err != nil {
		return false, k.err
	}
	return k.Keys.Release(key, id, a)
}

func TestLeasesThatHold(t *testing.T) {
	l := &leasing{Host: host()}
	limit, err := cell.ParseLimit("5/1h")
	if err != nil {
		t.Fatal(err)
	}
	lease := func() (id int64) {
		terms := store.Terms{LeaseNS: 60e9}
		taken, err := l.Store.Take([]store.Call{{Key: []byte("k"), Limit: &limit}}, store.TakeOptions{Cost: 2, Terms: &terms}, l.Access())
		if err != nil || taken.Limited || terms.Lease == 0 {
			t.Fatal(taken, err)
		}
		return terms.Lease
	}
	used := func(want int64) {
		t.Helper()
		calls := []store.Call{{Key: []byte("k"), Limit: &limit}}
		_, err := l.Store.Take(calls, store.TakeOptions{Mode: cell.Peek}, l.Access())
		if err != nil || 5-calls[0].Decision.Remaining != want {
			t.Errorf("%d of 5 are left, want %d used; %v", calls[0].Decision.Remaining, want, err)
		}
	}
	do := func(want string, words ...any) {
		t.Helper()
		c := &command.Call{Host: l, NowNS: l.NowNS}
		for _, word := range words {
			c.Args = append(c.Args, fmt.Append(nil, word))
		}
		l.ended, l.args = nil, 0
		for _, row := range Rows(nil) {
			if strings.EqualFold(row.Name, string(c.Args[0])) {
				c.Row = row
				row.Run(c)
			}
		}
		if got := string(c.Out); got != want {
			t.Errorf("%v: %q, want %q", words, got, want)
		}
	}
	told := func(want ...[2]int64) {
		t.Helper()
		if fmt.Sprint(l.ended) != fmt.Sprint(want) {
			t.Errorf("told are the ends %v, want %v", l.ended, want)
		}
	}
	id := lease()
	do(":1\r\n", "CL.RENEW", "k", id, 120_000)
	told([2]int64{id, l.NowNS + 120e9})
	do(":0\r\n", "CL.RENEW", "k", id+1, 1)
	told()
	l.NowNS += 100e9
	used(2)
	for _, ms := range []any{0, -1, argument.MaxLeaseMS + 1} {
		do(fails(argument.ErrLease, argument.MaxLeaseMS), "CL.RENEW", "k", id, ms)
	}
	do(":1\r\n", "CL.RENEW", "k", id, argument.MaxLeaseMS)
	do(":1\r\n", "CL.RENEW", "k", id, 1)
	do(fails(argument.ErrNotInteger), "CL.RENEW", "k", id, "x")
	l.err = errors.New("no right")
	for _, call := range [][]any{{"CL.RENEW", "k", id, 5}, {"CL.RELEASE", "k", id}, {"CL.SETTLE", "k", id, 0}} {
		do("-ERR no right\r\n", call...)
		told()
	}
	l.err = nil
	do(":1\r\n", "CL.RELEASE", "k", id)
	told([2]int64{id, 0})
	if l.args != endOfLease {
		t.Errorf("the end of a lease counts as %d", l.args)
	}
	used(0)
	do(":0\r\n", "CL.RELEASE", "k", id)
	told()
	id = lease()
	do(fails(errSettle), "CL.SETTLE", "k", id, -1)
	do(fails(errSettle), "CL.SETTLE", "k", id, cell.MaxCost+1)
	do(fails(argument.ErrNotInteger), "CL.SETTLE", "k", "x", 1)
	do(":0\r\n", "CL.SETTLE", "k", id+1, int64(cell.MaxCost))
	do(":1\r\n", "CL.SETTLE", "k", id, 1)
	told([2]int64{id, 0})
	if l.args != endOfLease {
		t.Errorf("the end of a lease counts as %d", l.args)
	}
	used(1)
	do(":1\r\n", "CL.RESET", "k", "l")
	used(0)
}
