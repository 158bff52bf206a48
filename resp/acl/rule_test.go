package acl

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// testTable is a small table: a container, a command with a key, one with another category, and one that is everybody's.
func testTable() *Table {
	return NewTable([]*Command{
		{Name: "get", Categories: Read | Fast},
		{Name: "set", Categories: Write | Slow},
		{Name: "auth", Categories: Fast | Connection, Public: true},
		{Name: "select", Categories: Fast | Connection},
		{Name: "config", Categories: Slow, Subs: []*Command{
			{Name: "config|get", Categories: Admin | Slow},
			{Name: "config|set", Categories: Admin | Slow},
		}},
	}, func(pattern string) (func(key []byte) bool, string) {
		prefix, all := strings.CutSuffix(pattern, "*")
		if strings.Contains(prefix, "?") {
			return nil, "no such pattern"
		}
		return func(key []byte) bool {
			return string(key) == pattern || all && strings.HasPrefix(string(key), prefix)
		}, ""
	})
}

// may lists the commands that rights allow.
func may(r *Rights) (names []string) {
	for _, c := range r.table.commands {
		if r.MayRun(c, nil) && !c.Public {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestCommandRules(t *testing.T) {
	for _, test := range []struct{ rules, says, may string }{
		{"", "-@all", ""},
		{"+get", "-@all +get", "get"},
		{"+GET +get", "-@all +get", "get"},
		{"+@all", "+@all", "get set select config config|get config|set"},
		{"+@all -config", "+@all -config", "get set select"},
		{"+@all -config|set", "+@all -config|set", "get set select config config|get"},
		{"+config|get", "-@all +config|get", "config|get"},
		{"+config|get -config", "-@all -config", ""},
		{"-config|set +config", "-@all +config", "config config|get config|set"},
		{"+@admin -config|set", "-@all +@admin -config|set", "config|get"},
		{"+@ADMIN +get -@admin", "-@all +get -@admin", "get"},
		{"+get -@read +get", "-@all -@read +get", "get"},
		{"+get -@read", "-@all +get -@read", ""},
		{"+get +@all", "+@all", "get set select config config|get config|set"},
		{"+@all -@all +set", "-@all +set", "set"},
		{"+@slow", "-@all +@slow", "set config config|get config|set"},
		{"+select|0", "-@all +select|0", ""},
		{"+select|0 -select", "-@all -select", ""},
		{"nocommands allcommands", "+@all", "get set select config config|get config|set"},
	} {
		r := noRights(testTable())
		for rule := range strings.FieldsSeq(test.rules) {
			if err := r.apply(rule); err != nil {
				t.Fatalf("%s: %s: %v", test.rules, rule, err)
			}
		}
		if got := strings.Join(may(r), " "); r.Commands() != test.says || got != test.may {
			t.Errorf("%s: %q, may %q, want %q, %q", test.rules, r.Commands(), got, test.says, test.may)
		}
	}
}

func TestMayRun(t *testing.T) {
	table := testTable()
	r := noRights(table)
	for _, rule := range []string{"+select|0", "+select|X"} {
		if err := r.apply(rule); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]bool{
		"select": false, "select 0": true, "SELECT x": true, "select 1": false, "get 0": false, "auth x": true,
	} {
		words := bytes.Fields([]byte(args))
		if got := r.MayRun(table.find(string(words[0])), words); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestMayTouch(t *testing.T) {
	r := noRights(testTable())
	for _, rule := range []string{"~a:*", "%R~r:*", "%w~w:*", "%R~both", "%W~both"} {
		if err := r.apply(rule); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		key    string
		access Access
		want   bool
	}{
		{"a:1", Reads | Writes, true}, {"b:1", 0, false}, {"r:1", Reads, true}, {"r:1", Writes, false}, {"r:1", Reads | Writes, false},
		{"r:1", 0, true}, {"w:1", Writes, true}, {"w:1", Reads, false}, {"both", Reads | Writes, true},
	} {
		if got := r.MayTouch([]byte(test.key), test.access); got != test.want {
			t.Errorf("%s, %v: %v", test.key, test.access, got)
		}
	}
	if got, want := r.Keys(), "~a:* %R~r:* %W~w:* ~both"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A user is all of a SETUSER or as before, and what it may hold is bounded.
func TestSetIsBounded(t *testing.T) {
	us := NewUsers(testTable())
	rules := func(n int, rule func(i int) string) (list []string) {
		for i := range n {
			list = append(list, rule(i))
		}
		return list
	}
	number := func(i int) string { return strings.Repeat("x", i) }
	for name, bad := range map[string][]string{
		"patterns":  rules(MostOfAKind+1, func(i int) string { return "~" + number(i) }),
		"passwords": rules(MostOfAKind+1, func(i int) string { return ">" + number(i) }),
		"arguments": rules(MostOfAKind+2, func(i int) string { return "+select|" + number(1+i) }),
		"rules":     rules(mostRules+1, func(int) string { return "+get" }),
		"bytes":     {"on", "~" + strings.Repeat("x", mostBytes)},
		"one bad":   {"on", "+get", "nosuch"},
	} {
		if err := us.Set("a", bad); err == nil || us.Get("a") != nil {
			t.Errorf("%s: %v, %v", name, err, us.Get("a"))
		}
	}
	if err := us.Set("a", rules(MostOfAKind, func(i int) string { return "~" + number(i) })); err != nil {
		t.Error(err)
	}
	before := us.bytes
	if err := us.Set("a", []string{"reset"}); err != nil || us.bytes >= before {
		t.Errorf("%v, %d bytes after %d", err, us.bytes, before)
	}
	if us.Delete("a"); us.bytes != len(us.Default.Line()) {
		t.Errorf("%d bytes", us.bytes)
	}
}

func TestAuthenticate(t *testing.T) {
	us := NewUsers(testTable())
	if err := us.Set("a", []string{"on", ">one", ">two"}); err != nil {
		t.Fatal(err)
	}
	may := func(name, password string) bool { return us.Authenticate([]byte(name), []byte(password)) != nil }
	if !may("a", "one") || !may("a", "two") || may("a", "") || may("a", "three") || may("b", "one") || !may("default", "any") {
		t.Error("passwords")
	}
	us.SetPassword("p")
	if may("default", "any") || !may("default", "p") || us.Open() {
		t.Error("the default user's password")
	}
	if err := us.Set("a", []string{"off"}); err != nil || may("a", "one") {
		t.Error("off", err)
	}
}

// FuzzRules applies any rules. Rights that say what they are make the same rights again, and a rule with a mistake changes nothing.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"on >pw ~a:* %R~b +get", "reset +@all -config|set nopass", "+select|0 -select +@read -@read",
		"#" + strings.Repeat("0a", 32) + " resetpass !x <y %RW~x %~y",
		"allkeys resetkeys ~ allchannels &x (+get) ( \x00 +config|get|x + - % +@ ~a\tb", "sanitize-payload +CONFIG -Config|GET +config",
	} {
		f.Add(seed)
	}
	table := testTable()
	f.Fuzz(func(t *testing.T, text string) {
		r := noRights(table)
		for _, rule := range strings.Split(text, " ") {
			before := r.String()
			next, err := r.with(rule)
			if r.String() != before || err != nil && strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: %v, %q was %q", rule, err, r, before)
			}
			if err == nil {
				r = next
			}
		}
		again := noRights(table)
		for _, rule := range strings.Split(r.String(), " ") {
			if err := again.apply(rule); err != nil {
				t.Fatalf("%q: %q: %v", r, rule, err)
			}
		}
		if again.String() != r.String() || !slices.Equal(again.allowed, r.allowed) || again.MayAll() != r.MayAll() ||
			len(r.firstArgs)+len(again.firstArgs) > 0 && !reflect.DeepEqual(again.firstArgs, r.firstArgs) {
			t.Errorf("%q: %q is %q", text, r, again)
		}
	})
}

// with returns the rights that a rule makes of these.
func (r *Rights) with(rule string) (*Rights, error) {
	changed := r.clone()
	return changed, changed.apply(rule)
}
