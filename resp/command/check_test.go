package command

import (
	"bytes"
	"fmt"
	"testing"

	"celld/resp/acl"
	"celld/resp/command/spec"
)

// A check of many keys takes steps, and ends at the first key that the user has no right to.
func TestCheckInSteps(t *testing.T) {
	del := &Row{Name: "del", Arity: -2, Flags: spec.Write, Keys: spec.AllKeys, Group: "generic", Run: func(*Call) {}}
	object := &Row{Name: "object", Arity: -2, Group: "generic",
		Sub: []*Row{{Name: "freq", Arity: 3, Flags: spec.Readonly, Keys: spec.SubKey, Group: "generic", Run: func(*Call) {}}}}
	table := NewTable([]*Row{del, object}, func() any { return nil })
	users := acl.NewUsers(table.ACL())
	rules := []string{"on", "+@all", "-object|freq"}
	for i := range 99 {
		rules = append(rules, fmt.Sprintf("~other%d:*", i))
	}
	if err := users.Set("app", append(rules, "~key:*")); err != nil {
		t.Fatal(err)
	}
	rights := users.Get("app").Rights()
	few, many := [][]byte{[]byte("DEL")}, [][]byte{[]byte("DEL")}
	for i := range 200 {
		if many = append(many, fmt.Appendf(nil, "key:%d", i)); i < 20 {
			few = many[:len(many):len(many)]
		}
	}
	long := [][]byte{[]byte("DEL"), []byte("key:" + string(bytes.Repeat([]byte("x"), 20_000)))}
	for _, test := range []struct {
		row    *Row
		args   [][]byte
		steps  int
		reason acl.Reason
		object string
	}{
		{del, few, 1, "", ""}, {del, many, 5, "", ""}, {del, append(few, []byte("no")), 1, acl.DeniedKey, "no"},
		{del, append(many[:150:150], []byte("no"), []byte("no2")), 4, acl.DeniedKey, "no"}, {del, long, 25, "", ""},
		{object.Sub[0], [][]byte{[]byte("OBJECT"), []byte("FREQ"), []byte("key:1")}, 1, acl.DeniedCommand, "object|freq"},
	} {
		c, steps := Check{Row: test.row, Rights: rights}, 1
		for c.Step(test.args) {
			steps++
		}
		if c.Reason != test.reason || c.Object != test.object || steps < test.steps-1 || steps > test.steps+1 {
			t.Errorf("%.20q: %q about %.10q after %d steps, want %q about %q after %d", test.args[0], c.Reason, c.Object, steps,
				test.reason, test.object, test.steps)
		}
	}
}

func TestShown(t *testing.T) {
	for call, want := range map[string]string{
		"AUTH a b": "AUTH _ _", "hello": "hello", "HELLO 3 AUTH u p": "HELLO 3 _ _ _", "CONFIG": "CONFIG", "config get x": "config get _",
		"ACL SETUSER u on": "ACL SETUSER _ _", "ACL LIST": "ACL LIST", "acl dryrun u get k": "acl dryrun u get _",
		"ACL DRYRUN u": "ACL DRYRUN u", "acl": "acl", "GET auth": "GET auth",
	} {
		args := bytes.Fields([]byte(call))
		var shown [][]byte
		for i, arg := range Shown(args) {
			if i != len(shown) {
				t.Errorf("%s: %d comes after %d others", arg, i, len(shown))
			}
			shown = append(shown, arg)
		}
		got := bytes.ReplaceAll(bytes.Join(shown, []byte(" ")), []byte("(redacted)"), []byte("_"))
		if string(got) != want || string(bytes.Join(args, []byte(" "))) != call {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
		for _, arg := range Shown(args) { // the slow log stops early
			if got := string(arg); got != string(args[0]) {
				t.Errorf("%s begins with %s", call, got)
			}
			break
		}
	}
}

// The log has what an operator has changed, without passwords.
func TestTold(t *testing.T) {
	for call, want := range map[string]string{
		"ACL SETUSER u on >p <p #abc !abc ~a:* +get": "ACL SETUSER u on _ _ _ _ ~a:* +get", "acl setuser >u >p": "acl setuser >u _",
		"CONFIG SET timeout 5 RequirePass p maxclients 9": "CONFIG SET timeout 5 RequirePass _ maxclients 9",
		"ACL DELUSER >u": "ACL DELUSER >u", "CONFIG SET requirepass": "CONFIG SET requirepass",
		"CL.RULE ADD DENY >x": "CL.RULE ADD DENY >x", "acl": "acl", "config set": "config set",
	} {
		var told [][]byte
		for _, arg := range Told(bytes.Fields([]byte(call))) {
			told = append(told, arg)
		}
		if got := bytes.ReplaceAll(bytes.Join(told, []byte(" ")), []byte("(redacted)"), []byte("_")); string(got) != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}

func TestInvalidate(t *testing.T) {
	keys := [][]byte{[]byte("a"), []byte("a"), []byte("b")}
	var r Reply
	if r.Invalidate(keys); len(r.Out) != 0 {
		t.Errorf("in RESP2: %q", r.Out)
	}
	r.RESP3 = true
	if r.Invalidate(nil); len(r.Out) != 0 {
		t.Errorf("no keys: %q", r.Out)
	}
	if r.Invalidate(keys); string(r.Out) != ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n" {
		t.Errorf("%q", r.Out)
	}
}
