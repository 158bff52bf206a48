package command_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/command/spec"
	"celld/resp/glob"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

func words(text string) (args [][]byte) {
	for _, word := range strings.Fields(text) {
		args = append(args, []byte(word))
	}
	return args
}

func none(*command.Call) {}

func noStats() any { return nil }

// The access of a command to a key depends on the key's place and, for SET, on the option GET.
func TestAccess(t *testing.T) {
	const reads, writes = acl.Reads, acl.Writes
	for _, test := range []struct {
		row           command.Row
		args          string
		first, second acl.Access
	}{
		{command.Row{Flags: spec.Write}, "x k l", reads | writes, reads | writes},
		{command.Row{Flags: spec.Readonly}, "x k l", reads, reads},
		{command.Row{}, "x k l", reads | writes, reads | writes},
		{command.Row{Flags: spec.Readonly, Access: spec.Looks}, "x k l", 0, 0},
		{command.Row{Flags: spec.Readonly, Access: spec.Writes}, "x k l", writes, writes},
		{command.Row{Access: spec.Moves}, "x k l", reads | writes, writes},
		{command.Row{Flags: spec.Readonly, Access: spec.Moves}, "x k l", reads | writes, writes},
		{command.Row{Access: spec.Copies}, "x k l", reads, writes},
		{command.Row{Access: spec.Sets}, "set k v", writes, writes},
		{command.Row{Access: spec.Sets}, "set k", writes, writes},
		{command.Row{Access: spec.Sets}, "set k get", writes, writes},
		{command.Row{Access: spec.Sets}, "set k v Get", reads | writes, reads | writes},
		{command.Row{Access: spec.Sets}, "set k v NX GET", reads | writes, reads | writes},
		{command.Row{Access: spec.Sets}, "set k v NX", writes, writes},
		{command.Row{Flags: spec.Readonly, Access: spec.Sets}, "set k v GET", reads | writes, reads | writes},
	} {
		args := words(test.args)
		if first, second := test.row.AccessTo(0, args), test.row.AccessTo(1, args); first != test.first || second != test.second {
			t.Errorf("%s, flags %d, access %d: %d and %d, want %d and %d", test.args, test.row.Flags, test.row.Access, first, second,
				test.first, test.second)
		}
	}
}

func TestCategories(t *testing.T) {
	container := &command.Row{Name: "box", Flags: spec.Fast, Group: "generic"}
	for _, test := range []struct {
		want string
		row  command.Row
	}{
		{"keyspace write slow", command.Row{Flags: spec.Write, Group: "generic", Run: none}},
		{"keyspace read fast", command.Row{Flags: spec.Readonly | spec.Fast, Group: "generic", Run: none}},
		{"keyspace slow", command.Row{Flags: spec.Fast, Group: "generic", Run: none, Parent: container}},
		{"read string fast", command.Row{Flags: spec.Readonly | spec.Fast, Group: "string", Run: none}},
		{"read hash slow", command.Row{Flags: spec.Readonly, Group: "hash", Run: none}},
		{"slow scripting", command.Row{Flags: spec.Readonly, Group: "scripting", Run: none}},
		{"write slow scripting", command.Row{Flags: spec.Write, Group: "scripting", Run: none}},
		{"admin slow dangerous", command.Row{Flags: spec.Admin, Group: "server", Run: none}},
		{"slow blocking", command.Row{Flags: spec.Blocking, Group: "server", Run: none}},
		{"slow connection", command.Row{Group: "connection", Run: none}},
		{"fast transaction", command.Row{Flags: spec.Fast, Group: "transactions", Run: none}},
		{"fast celld", command.Row{Flags: spec.Fast, Group: spec.GroupLimit, Run: none}},
		{"write fast celld", command.Row{Flags: spec.Fast | spec.Write, Group: spec.GroupLimit, Run: none}},
		{"slow celld", command.Row{Flags: spec.Admin | spec.Write, Group: spec.GroupLimit}},
		{"slow", command.Row{Flags: spec.Admin | spec.Write | spec.Readonly | spec.Blocking, Group: "generic"}},
		{"keyspace read fast", command.Row{Name: "dbsize", Flags: spec.Readonly, Group: "server", Run: none}},
		{"keyspace read slow dangerous", command.Row{Name: "keys", Flags: spec.Readonly, Group: "generic", Run: none}},
		{"write admin slow dangerous celld", command.Row{Name: "set", Flags: spec.Write, Group: spec.GroupLimit, Run: none, Parent: &command.Row{Name: "cl.policy"}}},
	} {
		got, want := test.row.Categories().Names(), strings.Fields(test.want)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s %s: %v, want %v", test.row.Group, test.row.Name, got, want)
		}
	}
}

// RENAME's keys need different rights, and a check looks at each by its place.
func TestCheckOfTwoKeys(t *testing.T) {
	rename := &command.Row{Name: "rename", Arity: 3, Flags: spec.Write, Keys: spec.TwoKeys, Access: spec.Moves, Group: "generic", Run: none}
	users := acl.NewUsers(command.NewTable([]*command.Row{rename}, noStats).ACL())
	if err := users.Set("u", []string{"on", "+@all", "~both", "%W~writes", "%R~reads"}); err != nil {
		t.Fatal(err)
	}
	for call, object := range map[string]string{
		"RENAME both writes": "", "RENAME both both": "", "RENAME both reads": "reads", "RENAME writes both": "writes",
		"RENAME reads both": "reads",
	} {
		c := command.Check{Row: rename, Rights: users.Get("u").Rights()}
		for c.Step(words(call)) {
		}
		if c.Object != object || (c.Reason == acl.DeniedKey) != (object != "") {
			t.Errorf("%s: %q about %q, want %q", call, c.Reason, c.Object, object)
		}
	}
}

// host notes what calls ask of it, and does work aside and in steps as a server does.
type host struct {
	*calltest.Host
	call           *command.Call
	counted, steps int
	wentAside      bool
}

func newHost() *host { return &host{Host: calltest.New(memory.Options{})} }

func (h *host) run(do func(*command.Call), text string) string {
	h.call = &command.Call{Host: h, Args: words(text), NowNS: h.NowNS, Row: &command.Row{Name: "x"}}
	h.call.RESP3 = h.RESP3
	h.counted, h.steps, h.wentAside = 0, 0, false
	do(h.call)
	return string(h.call.Out)
}

func (h *host) CountDecisions() { h.counted++ }

func (h *host) Offload(long bool, begin func([][]byte) command.Work) {
	h.wentAside = long
	begin(h.call.Args)()(h.call)
}

func (h *host) InSteps(step command.Step) {
	for h.steps = 1; step(h.call); h.steps++ {
		if h.steps > 1000 {
			panic("the steps do not end")
		}
	}
}

// A list is made aside, except in a transaction, and ends where it is longer than a client's replies may be.
func TestList(t *testing.T) {
	list := func(c *command.Call) {
		c.Map(1)
		c.Field(string(c.Args[1])+c.Row.Name, c.NowNS)
		c.OverOutput(len(c.Out))
	}
	h := newHost()
	h.RESP3 = true
	want := fmt.Sprintf("%%1\r\n$2\r\nkx\r\n:%d\r\n", h.NowNS)
	for _, inside := range []bool{false, true} {
		h.InExec = inside
		if got := h.run(func(c *command.Call) { c.List(list) }, "x k"); got != want || h.wentAside == inside || h.counted != 1 {
			t.Errorf("inside %v: %q, aside %v, counted %d times", inside, got, h.wentAside, h.counted)
		}
	}
	h.InExec = false
	if h.Most = len(want); h.run(func(c *command.Call) { c.List(list) }, "x k") != want {
		t.Error("no list of just the most that a client may have")
	}
	h.Most--
	if got := h.run(func(c *command.Call) { c.List(list) }, "x k"); got != "" {
		t.Errorf("more than a client may have: %q", got)
	}
	gaveUp := func(c *command.Call) {
		if c.OverOutput(h.Most) || !c.OverOutput(h.Most+1) || !c.OverOutput(0) { // once over, it stays so
			t.Error("a list learns wrongly whether it is too long")
		}
	}
	if got := h.run(func(c *command.Call) { c.List(gaveUp) }, "x k"); got != "" {
		t.Errorf("a list that was given up: %q", got)
	}
}

// A command of many keys takes steps of 128.
func TestEachKey(t *testing.T) {
	h := newHost()
	for keys, steps := range map[int]int{0: 0, 1: 0, 127: 0, 128: 1, 129: 2, 256: 2, 257: 3, 384: 3, 385: 4} {
		var seen []string
		got := h.run(func(c *command.Call) {
			c.EachKey(func(_ *command.Call, key []byte) bool {
				seen = append(seen, string(key))
				return len(key)%2 == 0
			}, (*command.Call).Int)
		}, "x"+strings.Repeat(" kk k", keys/2)+strings.Repeat(" kk", keys%2))
		if want := fmt.Sprintf(":%d\r\n", (keys+1)/2); got != want || h.steps != steps || len(seen) != keys {
			t.Errorf("%d keys: %q in %d steps, %d were visited; want %q in %d", keys, got, h.steps, len(seen), want, steps)
		}
	}
	limit, _ := cell.ParseLimit("5/1h")
	for _, key := range []string{"a", "b"} {
		if _, err := h.Store.Take([]store.Call{{Key: []byte(key), Limit: &limit}}, store.TakeOptions{Cost: 1}, h.Access()); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.run((*command.Call).DeleteKeys, "DEL a b c"); got != ":2\r\n" {
		t.Errorf("DEL: %q", got)
	}
}

func TestOnConnection(t *testing.T) {
	h := newHost()
	run := command.OnConnection(func(c *command.Call, own command.Connection) {
		own.CloseAfterReply()
		c.OK()
	})
	if got := h.run(run, "QUIT"); got != "-"+command.ErrNoConnection+"\r\n" {
		t.Errorf("without a connection: %q", got)
	}
	own := h.Connect(&client.List{}, acl.NewUsers(command.NewTable(nil, noStats).ACL()))
	if got := h.run(run, "QUIT"); got != "+OK\r\n" || !own.Closed {
		t.Errorf("%q, closed %v", got, own.Closed)
	}
}

type unknownPolicies struct {
	policy.Keeper
	err error
}

func (u unknownPolicies) PoliciesUnknown() error { return u.err }

func TestLiterals(t *testing.T) {
	if got := argument.NoPolicy(unknownPolicies{}, []byte("p")); got != fmt.Sprintf(argument.ErrNoPolicy, "p") {
		t.Error(got)
	}
	got := argument.NoPolicy(unknownPolicies{}, []byte(strings.Repeat("p", 200)))
	if got != fmt.Sprintf(argument.ErrNoPolicy, strings.Repeat("p", 128)) {
		t.Error(got)
	}
	if got := argument.NoPolicy(unknownPolicies{err: errors.New("gone")}, []byte("p")); got != "STOREDOWN gone" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"5/1h": "", "50/1h,algo=log": "", "51/1h,algo=log": fmt.Sprintf(argument.ErrLogMax, 51, 50), "51/1h": "",
		"x": "ERR invalid limit: limit 'x': expected count/period, such as 100/1m",
	} {
		limit, problem := argument.ParseLiteral([]byte(text), 50)
		if problem != want || want == "" && limit.String() != text {
			t.Errorf("%s: %s, %q", text, limit.String(), problem)
		}
	}
}

func TestOptions(t *testing.T) {
	ours := argument.Options{Flags: []string{"NX", "XX"}, Valued: []string{"EX", "ID"}}
	redis := argument.Options{Flags: []string{"NX", "XX"}, Valued: []string{"EX", "ID"}, Refusal: "ERR no '%s'"}
	plain := argument.Options{Flags: []string{"NX"}, Refusal: argument.ErrSyntax}
	unknown := func(word string) string { return fmt.Sprintf(argument.ErrOption, word, "EX, ID, NX or XX") }
	twice := func(word string) string { return fmt.Sprintf(argument.ErrOptionTwice, word) }
	for _, test := range []struct {
		o          *argument.Options
		args, seen string
		want       string
	}{
		{&ours, "", "", ""}, {&ours, "nx EX 5 Id nx", "NX= EX=5 ID=nx ", ""}, {&ours, "ID 1 XX", "ID=1 XX= ", ""},
		{&ours, "NX nx", "NX= ", twice("NX")}, {&ours, "EX 1 NX ex 2", "EX=1 NX= ", twice("EX")},
		{&ours, "NX EX", "NX= ", fmt.Sprintf(argument.ErrOptionValue, "EX")},
		{&ours, "NXX", "", unknown("NXX")}, {&ours, "N", "", unknown("N")},
		{&ours, "I", "", unknown("I")}, {&ours, strings.Repeat("y", 200), "", unknown(strings.Repeat("y", 128))},
		{&ours, "NX STOP 1", "NX= ", unknown("STOP")}, {&ours, "EX stop NX", "EX=stop ", "stopped"},
		{&redis, "NX nx EX 1 EX 2", "NX= NX= EX=1 EX=2 ", ""}, {&redis, "NX EX", "NX= ", "ERR no 'EX'"},
		{&redis, "what", "", "ERR no 'what'"}, {&plain, "NX NX", "NX= NX= ", ""}, {&plain, "XX", "", argument.ErrSyntax},
	} {
		var seen strings.Builder
		got := test.o.Read(words(test.args), func(option string, value []byte) string {
			fmt.Fprintf(&seen, "%s=%s ", option, value)
			if string(value) == "stop" {
				return "stopped"
			}
			return ""
		})
		if got != test.want || seen.String() != test.seen {
			t.Errorf("%q: %q after %q, want %q after %q", test.args, got, seen.String(), test.want, test.seen)
		}
	}
}

func TestKeysOf(t *testing.T) {
	pairs := spec.KeyRange{First: 1, Last: -1, Step: 2}
	butLast := spec.KeyRange{First: 1, Last: -2, Step: 1}
	for _, test := range []struct {
		keys       spec.KeyRange
		args, want string
	}{
		{spec.KeyRange{}, "PING a", ""}, {spec.OneKey, "GET a b", "a"}, {spec.OneKey, "GET", ""}, {spec.TwoKeys, "COPY a b c", "a b"},
		{spec.TwoKeys, "COPY a", "a"}, {spec.AllKeys, "DEL a b c", "a b c"}, {spec.AllKeys, "DEL", ""}, {spec.SubKey, "OBJECT FREQ a", "a"},
		{spec.KeyRange{Step: 1}, "a b", "a"}, {pairs, "MSET a 1 b 2", "a b"}, {pairs, "MSET a 1 b", "a b"}, {butLast, "BLPOP a b 0", "a b"},
		{spec.ScriptKeys, "EVAL s 0 a", ""}, {spec.ScriptKeys, "EVAL s 1 a b", "a"}, {spec.ScriptKeys, "EVAL s 2 a b", "a b"},
		{spec.ScriptKeys, "EVAL s 3 a b", ""}, {spec.ScriptKeys, "EVAL s x a", ""}, {spec.ScriptKeys, "EVAL s -1 a", ""},
		{spec.CountedPairs, "CL.MTAKE 1 a 1 b 2", "a"}, {spec.CountedPairs, "CL.MTAKE 2 a 1 b 2", "a b"},
		{spec.CountedPairs, "CL.MTAKE 2 a 1 b", ""},
	} {
		row := &command.Row{Keys: test.keys}
		if got := string(joined(row.KeysOf(words(test.args)))); got != test.want {
			t.Errorf("%s: %q, want %q", test.args, got, test.want)
		}
	}
	for _, test := range []struct {
		row  command.Row
		want bool
	}{
		{command.Row{Many: true}, true}, {command.Row{Keys: spec.AllKeys}, true}, {command.Row{Keys: spec.OneKey}, false},
		{command.Row{}, false},
	} {
		if got := test.row.TakesMany(); got != test.want {
			t.Errorf("%+v takes many: %v", test.row, got)
		}
	}
}

func joined(list [][]byte) (all []byte) {
	for i, b := range list {
		if i > 0 {
			all = append(all, ' ')
		}
		all = append(all, b...)
	}
	return all
}

func TestRows(t *testing.T) {
	wrong, many := "ERR wrong number of arguments for 'x' command", "ERR at most 5 arguments are taken"
	for _, test := range []struct {
		row  command.Row
		n    int
		want string
	}{
		{command.Row{Arity: 2}, 2, ""}, {command.Row{Arity: 2}, 3, wrong}, {command.Row{Arity: 2}, 1, wrong},
		{command.Row{Arity: -2}, 1002, ""}, {command.Row{Arity: -2}, 1003, wrong}, {command.Row{Arity: -2}, 1, wrong},
		{command.Row{Arity: -2, Many: true}, 1003, ""}, {command.Row{Arity: -2, Keys: spec.AllKeys}, 1003, ""},
		{command.Row{Arity: -2, Most: 5}, 7, ""}, {command.Row{Arity: -2, Most: 5}, 8, many},
	} {
		if test.row.Name = "x"; test.row.ArityError(test.n) != test.want {
			t.Errorf("%+v, %d arguments: %q", test.row, test.n, test.row.ArityError(test.n))
		}
	}
	x := func(bytes int) []byte { return make([]byte, bytes) }
	for name, test := range map[string]struct {
		args [][]byte
		want bool
	}{
		"64": {make([][]byte, 64), false}, "65": {make([][]byte, 65), true}, "16 KB": {[][]byte{x(10), x(16<<10 - 10)}, false},
		"more": {[][]byte{x(16<<10 - 10), x(11)}, true},
	} {
		if got := command.Big(test.args); got != test.want {
			t.Errorf("%s is big: %v", name, got)
		}
	}
	all := command.Row{Flags: 1<<17 - 1, Keys: spec.ScriptKeys}
	if got := strings.Join(all.FlagNames(), " "); got != "write readonly denyoom module admin noscript blocking loading stale skip_monitor skip_slowlog fast no_auth allow_busy no_multi movablekeys" {
		t.Error(got)
	}
	if got := (&command.Row{Flags: spec.Fast, Keys: spec.OneKey}).FlagNames(); !slices.Equal(got, []string{"fast"}) {
		t.Error(got)
	}
	object := &command.Row{Name: "object", Group: "generic"}
	for _, test := range []struct {
		row  command.Row
		want bool
	}{
		{command.Row{Name: "get", Group: "string"}, true}, {command.Row{Name: "hget", Group: "hash"}, true},
		{command.Row{Name: "cl.take", Group: spec.GroupLimit}, true}, {command.Row{Name: "cl.reset", Group: spec.GroupLimit}, false},
		{command.Row{Name: "del", Group: "generic"}, false}, {command.Row{Name: "freq", Group: "generic", Parent: object}, true},
		{command.Row{Name: "freq", Group: "generic", Parent: &command.Row{Name: "other"}}, false},
	} {
		if got := test.row.ReadsState(); got != test.want {
			t.Errorf("%s reads a state: %v", test.row.Name, got)
		}
	}
}

func TestTable(t *testing.T) {
	long := strings.Repeat("n", 32)
	stats := 0
	get := &command.Row{Name: "get", Arity: 2, Flags: spec.Readonly | spec.Fast, Group: "string", Run: none}
	box := &command.Row{Name: "box", Arity: -2, Flags: spec.NoAuth | spec.Admin, Since: "5.0", Group: "server", Sub: []*command.Row{
		{Name: "put", Arity: 3, Usage: "what", Summary: "Puts.", Group: "server", Run: none},
		{Name: "list", Arity: 2, Summary: "Lists.", Group: "server", Run: none},
	}}
	table := command.NewTable([]*command.Row{get, {Name: long, Run: none}, {Name: "za", Run: none}, box},
		func() any { stats++; return stats })
	hidden := &command.Row{Name: "hidden", Run: none, Group: "server"}
	table.Add(hidden)
	put := box.Sub[0]
	find := func(name string) *command.Row { return table.Find([]byte(name)) }
	for name, got := range map[string][2]*command.Row{
		"get": {find("get"), get}, "ZA": {find("ZA"), table.Rows[3]}, "GeT": {find("GeT"), get}, "ge": {find("ge"), nil},
		"long": {find(strings.ToUpper(long)), table.Rows[2]}, "longer": {find(long + "n"), nil}, "hidden": {find("HIDDEN"), hidden},
		"[": {find("{ox"), nil}, "sub": {table.FindFull([]byte("BOX|Put")), put}, "no sub": {table.FindFull([]byte("box|pu")), nil},
		"no box": {table.FindFull([]byte("bo|put")), nil}, "box": {table.FindFull([]byte("box")), box},
		"of none": {table.FindFull([]byte("get|put")), nil}, "call": {table.FindCall(words("get box")), get},
		"sub's call": {table.FindCall(words("box PUT x")), put}, "box's call": {table.FindCall(words("box")), box},
		"no call": {table.FindCall(words("box x")), nil}, "unknown": {table.FindCall(words("x put")), nil},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	names := func(rows []*command.Row) (list []string) {
		for _, row := range rows {
			list = append(list, row.FullName())
		}
		return list
	}
	if got := names(table.Rows); !slices.Equal(got, []string{"box", "get", long, "za"}) {
		t.Errorf("rows %v", got)
	}
	var each []*command.Row
	table.Each(func(row *command.Row) { each = append(each, row) })
	if !slices.Equal(names(each), []string{"box", "box|put", "box|list", "box|help", "get", long, "za"}) {
		t.Errorf("each %v", names(each))
	}
	seen := map[any]bool{}
	for _, row := range append(each, hidden) {
		if row.Stats == nil || seen[row.Stats] || row.ACL == nil || row.ACL.Name != row.FullName() ||
			row.ACL.Categories != row.Categories() || row.ACL.Public != (row.Flags&spec.NoAuth != 0) {
			t.Errorf("%s: %+v", row.FullName(), row)
		}
		seen[row.Stats] = true
	}
	if len(box.ACL.Subs) != 3 || box.ACL.Subs[0] != put.ACL {
		t.Errorf("rules see the subcommands %v", box.ACL.Subs)
	}
	help := box.Sub[2]
	if help.Arity != 2 || help.Flags != spec.NoAuth || help.Since != "5.0" || help.Group != "server" || help.Parent != box ||
		help.Summary == "" {
		t.Errorf("HELP: %+v", help)
	}
	want := "*7\r\n+BOX <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n+PUT what\r\n+    Puts.\r\n+LIST\r\n+    Lists.\r\n+HELP\r\n+    " + help.Summary + "\r\n"
	if got := newHost().run(help.Run, "box help"); got != want {
		t.Errorf("BOX HELP: %q", got)
	}
	users := acl.NewUsers(table.ACL())
	if err := users.Set("u", []string{"on", "+get", "+box|put", "~k[1]"}); err != nil {
		t.Fatal(err)
	}
	rights := users.Get("u").Rights()
	if !rights.MayRun(get.ACL, words("get k")) || !rights.MayRun(put.ACL, words("box put k")) ||
		rights.MayRun(box.Sub[1].ACL, words("box list")) {
		t.Error("rules confuse commands")
	}
	if may, _ := rights.Look([]byte("k1"), acl.Reads, 0, 10); !may {
		t.Error("a pattern does not match")
	}
	err := users.Set("u", []string{"~" + strings.Repeat("?", glob.MaxWild+1)})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a pattern with ? or [ has at most %d bytes", glob.MaxWild)) ||
		strings.Contains(err.Error(), "ERR a pattern") {
		t.Errorf("a long pattern: %v", err)
	}
	acls := hidden.ACL
	if table.Add(hidden); hidden.ACL != acls {
		t.Error("a row that is added again has other rights")
	}
	if table.Remove("hidden"); find("hidden") != nil || find("get") != get {
		t.Error("a removed name is found")
	}
	if get.FindSub([]byte("put")) != nil || box.FindSub([]byte("PUTS")) != nil || box.FindSub([]byte("lIST")) != box.Sub[1] {
		t.Error("subcommands")
	}
}

func TestUnknown(t *testing.T) {
	x := strings.Repeat("x", 128)
	for call, want := range map[string]string{
		"no":                            "ERR unknown command 'no', with args beginning with: ",
		"no a b":                        "ERR unknown command 'no', with args beginning with: 'a' 'b' ",
		x + "y":                         "ERR unknown command '" + x + "', with args beginning with: ",
		"no " + x + "y b":               "ERR unknown command 'no', with args beginning with: '" + x + "' ",
		"no " + x[:120] + " abcdefgh c": "ERR unknown command 'no', with args beginning with: '" + x[:120] + "' 'abcde' ",
		"no " + x[:124] + " abc d":      "ERR unknown command 'no', with args beginning with: '" + x[:124] + "' 'a' ",
		"no " + x[:125] + " abc d":      "ERR unknown command 'no', with args beginning with: '" + x[:125] + "' ",
	} {
		if got := command.Unknown(words(call)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", call, got, want)
		}
	}
}

// A reply is written in the protocol of the client.
func TestReply(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(*command.Call)
		resp2 string
		resp3 string // "": as in RESP2
	}{
		"ok":          {func(c *command.Call) { c.OK() }, "+OK\r\n", ""},
		"status":      {func(c *command.Call) { c.Status("yes") }, "+yes\r\n", ""},
		"int":         {func(c *command.Call) { c.Int(-5) }, ":-5\r\n", ""},
		"bool":        {func(c *command.Call) { c.Bool(true); c.Bool(false) }, ":1\r\n:0\r\n", ""},
		"bulk":        {func(c *command.Call) { c.Bulk([]byte("ab")); c.String("") }, "$2\r\nab\r\n$0\r\n\r\n", ""},
		"array":       {func(c *command.Call) { c.Array(2) }, "*2\r\n", ""},
		"map":         {func(c *command.Call) { c.Map(2) }, "*4\r\n", "%2\r\n"},
		"set":         {func(c *command.Call) { c.Set(2) }, "*2\r\n", "~2\r\n"},
		"null":        {func(c *command.Call) { c.Null() }, "$-1\r\n", "_\r\n"},
		"null array":  {func(c *command.Call) { c.NullArray() }, "*-1\r\n", "_\r\n"},
		"text":        {func(c *command.Call) { c.Text("abc") }, "$3\r\nabc\r\n", "=7\r\ntxt:abc\r\n"},
		"double":      {func(c *command.Call) { c.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
		"strings":     {func(c *command.Call) { c.Strings([]string{"a", "b"}) }, "*2\r\n$1\r\na\r\n$1\r\nb\r\n", ""},
		"string set":  {func(c *command.Call) { c.StringSet([]string{"a", "b"}) }, "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "~2\r\n$1\r\na\r\n$1\r\nb\r\n"},
		"statuses":    {func(c *command.Call) { c.Statuses([]string{"a", "b"}) }, "*2\r\n+a\r\n+b\r\n", "~2\r\n+a\r\n+b\r\n"},
		"pairs":       {func(c *command.Call) { c.Pairs([][2]string{{"a", "b"}, {"c", "d"}}) }, "$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n", ""},
		"field":       {func(c *command.Call) { c.Field("a", 5) }, "$1\r\na\r\n:5\r\n", ""},
		"error":       {func(c *command.Call) { c.Error("ERR 100%") }, "-ERR 100%\r\n", ""},
		"error about": {func(c *command.Call) { c.Error("ERR '%s' %d", "a", 5) }, "-ERR 'a' 5\r\n", ""},
		"failure":     {func(c *command.Call) { c.Fail(errors.New("100% no")) }, "-ERR 100% no\r\n", ""},
		"modules":     {(*command.Call).Modules, "*1\r\n*8\r\n$4\r\nname\r\n$10\r\nredis-cell\r\n$3\r\nver\r\n:500\r\n$4\r\npath\r\n$0\r\n\r\n$4\r\nargs\r\n*0\r\n", "*1\r\n%4\r\n$4\r\nname\r\n$10\r\nredis-cell\r\n$3\r\nver\r\n:500\r\n$4\r\npath\r\n$0\r\n\r\n$4\r\nargs\r\n*0\r\n"},
	} {
		h := newHost()
		if got := h.run(test.do, ""); got != test.resp2 {
			t.Errorf("%s: %q, want %q", name, got, test.resp2)
		}
		want := test.resp3
		if want == "" {
			want = test.resp2
		}
		if h.RESP3 = true; h.run(test.do, "") != want {
			t.Errorf("%s in RESP3: %q, want %q", name, h.call.Out, want)
		}
	}
	if command.ModuleLine != "name=redis-cell,ver=500,api=1,filters=0,usedby=[],using=[],options=[]" {
		t.Error(command.ModuleLine)
	}
	h := newHost()
	if h.run(func(c *command.Call) { c.Int(c.WallNS()) }, "") != fmt.Sprintf(":%d\r\n", h.Store.WallNS(h.NowNS)) {
		t.Errorf("wall time %s", h.call.Out)
	}
}
