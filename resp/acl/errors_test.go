package acl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each rule that cannot be applied says why, and changes nothing; those beside them can be.
func TestRuleErrors(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for rules, want := range map[string]error{
		"on off nopass resetpass sanitize-payload skip-sanitize-payload clearselectors reset": nil,
		"": nil, ">": nil, "~": nil,
		"nosuch": errSyntax, "=x": errSyntax,
		"#" + sum: nil, "#" + sum[1:]: errHash, "#" + sum + "0a": errHash, "#" + strings.ToUpper(sum): errHash,
		"#" + strings.Repeat("x", 64): errHash, "!x": errHash,
		"<x": errNoPassword, "!" + sum: errNoPassword, ">x <x": nil, ">x <x <x": errNoPassword, "#" + sum + " !" + sum: nil,
		">x >y >z <y <y": errNoPassword,
		"~a b":           errSyntax, "~a\tb": errSyntax, "%R~a": nil, "%RW~a %w~b": nil, "%~a": errSyntax,
		"%RR~a": errSyntax, "%x~a": errSyntax,
		"%R": errSyntax, "%R~a\tb": errSyntax,
		"~* ~a": errAfterAll, "allkeys %R~a": errAfterAll, "~* resetkeys ~a": nil, "~a ~*": nil,
		"&x": errChannel, "(+get)": errSelector, "&*": nil,
		"+@nosuch": errUnknown, "-@nosuch": errUnknown, "+@read -@admin": nil,
		"+nosuch": errUnknown, "-nosuch": errUnknown, "+get -config|get": nil, "-select|0": errUnknown, "+|x": errUnknown,
		"+nosuch|x": errUnknown,
		"+select|0": nil, "+select|": errSyntax, "+config|nosuch": errUnknown, "+config|get|x": errFirstArg, "+select|a\tb": errSyntax,
	} {
		r := noRights(testTable())
		got := error(nil)
		for _, rule := range strings.Split(rules, " ") {
			before := r.String()
			next, err := r.with(rule)
			if err != nil {
				got = err
			} else {
				r = next
			}
			if err != nil && r.String() != before {
				t.Errorf("%q: %s was %s", rules, r, before)
			}
		}
		if got != want || want != nil && got.Error() != string(want.(textError)) {
			t.Errorf("%q: %v, want %v", rules, got, want)
		}
	}
}

// A password that is removed was that one.
func TestPasswordsAreRemoved(t *testing.T) {
	r := noRights(testTable())
	for _, rule := range []string{">one", ">two", ">three", ">one"} {
		if err := r.apply(rule); err != nil {
			t.Fatal(err)
		}
	}
	for left, password := range []string{"two", "one", "three"} {
		if len(r.Passwords()) != 3-left || !r.accepts([]byte(password)) {
			t.Errorf("%s of %d", password, len(r.Passwords()))
		}
		if err := r.apply("<" + password); err != nil || r.accepts([]byte(password)) {
			t.Errorf("%s: %v", password, err)
		}
	}
}

func TestCategories(t *testing.T) {
	for i, name := range CategoryNames {
		if got := ParseCategory(strings.ToUpper(name)); got != 1<<i || !slices.Equal(got.Names(), []string{name}) {
			t.Errorf("%s: %d, %q", name, got, got.Names())
		}
	}
	if got := ParseCategory("nosuch"); got != 0 || got.Names() != nil {
		t.Errorf("%d", got)
	}
	if got := (Read | Celld).Names(); !slices.Equal(got, []string{"read", "celld"}) {
		t.Errorf("%q", got)
	}
	if got := testTable().In(Admin); !slices.Equal(got, []string{"config|get", "config|set"}) {
		t.Errorf("%q", got)
	}
	if got := lower("AZ@[`az{É"); got != "az@[`az{É" {
		t.Errorf("%q", got)
	}
}

// A bit for each command, and no more words than these need.
func TestManyCommands(t *testing.T) {
	for n, words := range map[int]int{1: 1, 64: 1, 65: 2, 128: 2, 129: 3} {
		var list []*Command
		for i := range n {
			list = append(list, &Command{Name: fmt.Sprint("c", i)})
		}
		r := noRights(NewTable(list, nil))
		if err := r.apply("+c" + fmt.Sprint(n-1)); err != nil || len(r.allowed) != words {
			t.Fatal(n, err, len(r.allowed))
		}
		for i, c := range r.table.commands {
			if r.MayRun(c, nil) != (i == n-1) {
				t.Errorf("%d of %d", i, n)
			}
		}
	}
}

// The rights that stand for everything are written so that Redis reads them.
func TestAllIsWritten(t *testing.T) {
	r := noRights(testTable())
	for _, rule := range []string{"~a", "~*", "&*", "+@all"} {
		if err := r.apply(rule); err != nil {
			t.Fatal(err)
		}
	}
	if r.Keys() != "~*" || r.Channels() != "&*" || r.String() != "off ~* &* +@all" {
		t.Errorf("%q, %q, %q", r.Keys(), r.Channels(), r)
	}
}

// An error names each mistake of a file by its line, in Redis's words: each unknown command, and the first other mistake of a line.
func TestFileMistakes(t *testing.T) {
	many := strings.Repeat(" on", mostRules-2)
	unknown := func(line int, rule string) string {
		return fmt.Sprintf("users.acl:%d: Error in applying operation '%s': %s. ", line, rule, errUnknown)
	}
	for text, want := range map[string]string{
		"user":                              "users.acl:1 should start with user keyword followed by the username. ",
		"\n# comment":                       "users.acl:2 should start with user keyword followed by the username. ",
		"user a\x00":                        "'users.acl:1: username 'a\x00' contains invalid characters. ",
		"user a\n\nuser a":                  "WARNING: Duplicate user 'a' found on line 3. ",
		"user a +x -y":                      unknown(1, "+x") + unknown(1, "-y"),
		"user a on\nuser b &x (x +z":        "users.acl:2: " + string(errChannel) + ". " + unknown(2, "+z"),
		"user a" + many:                     "",
		"user a" + many + " on":             "users.acl:1: " + string(errRules) + ". ",
		"user a on\r\n\tuser b\n \n user c": "",
	} {
		_, err := parse(testTable(), "users.acl", text)
		if got := fmt.Sprint(err); got != strings.TrimSpace(want) && (want != "" || err != nil) {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
		if err != nil && !errors.As(err, new(Mistakes)) {
			t.Errorf("%.40q: %T", text, err)
		}
	}
	if f, err := parse(testTable(), "f", "user a"); err != nil || f.rights["a"] == nil {
		t.Error("a user without rules", err)
	}
}

// A file with a great many mistakes is read until there is enough to tell: at 4 KB, and not one line later.
func TestManyMistakes(t *testing.T) {
	_, one := parse(testTable(), "f", "x")
	line := len(one.Error()) + 1
	_, err := parse(testTable(), strings.Repeat("f", 1+errorsAt-line), "x\nx\nx")
	if n := strings.Count(err.Error(), "should start"); n != 2 { // the first is exactly as long
		t.Errorf("%d lines are told", n)
	}
	if _, err = parse(testTable(), "f", strings.Repeat("x\n", 10_000)); len(err.Error()) > errorsAt+100 {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// The text of all users is bounded, and so is the file.
func TestFilesAreBounded(t *testing.T) {
	table := testTable()
	rest := len(line("a", noRights(table)))
	fits := "user a ~" + strings.Repeat("x", mostBytes-rest-2)
	if _, err := parse(table, "f", fits); err != nil {
		t.Error(err)
	}
	if _, err := parse(table, "f", fits+"x"); err == nil || err.Error() != "f: "+string(errFull) {
		t.Error(err)
	}
	for bytes, want := range map[int]bool{mostBytes: true, mostBytes + 1: false} {
		path := write(t, "user a on"+strings.Repeat(" ", bytes-len("user a on")))
		f, err := ReadFile(table, path)
		if (err == nil) != want || want && f.rights["a"] == nil || !want && !strings.HasSuffix(err.Error(),
			"users.acl': "+string(errFull)) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}

func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := ReadFile(testTable(), path); err == nil ||
		err.Error() != "Error loading ACLs, opening file '"+path+"': No such file or directory" {
		t.Error(err)
	}
	dir := t.TempDir()
	if _, err := ReadFile(testTable(), dir); err == nil || !strings.HasPrefix(err.Error(),
		"Error loading ACLs, opening file '"+dir+"': It is a directory") {
		t.Error(err)
	}
	before, _ := os.ReadDir("/proc/self/fd")
	path = write(t, "user a on")
	for range 10 {
		if _, err := ReadFile(testTable(), path); err != nil {
			t.Error(err)
		}
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before)+5 {
		t.Errorf("%d files are open, %d were", len(after), len(before))
	}
}

// An entry is the same for a minute, before or after; its log keeps so many, whose text ends at 1 KB.
func TestLogBounds(t *testing.T) {
	for apart, count := range map[int64]int64{60e9: 2, 60e9 + 1: 1, -60e9: 2, -60e9 - 1: 1, 1 << 62: 1} {
		var l Log
		l.Add(Entry{Object: "x", AtNS: 1e18}, 10)
		if l.Add(Entry{Object: "x", AtNS: 1e18 + apart}, 10); l.Last(1)[0].Count != count {
			t.Errorf("%d apart: %d", apart, l.Last(1)[0].Count)
		}
	}
	var l Log
	for i := range 3 {
		l.Add(Entry{Object: fmt.Sprint(i)}, 3)
	}
	if l.Add(Entry{Object: "2"}, 3); l.Last(1)[0].Count != 2 || len(l.Last(9)) != 3 {
		t.Error("the first is not looked at, or one was forgotten")
	}
	l.Add(Entry{Object: "3"}, 3)
	if len(l.Last(9)) != 3 || cap(l.entries) > 3 && l.entries[:4][3] != (Entry{}) {
		t.Error("what is beyond the bound is kept")
	}
	l.Add(Entry{Object: strings.Repeat("x", mostText)}, 3)
	if got := l.Last(1)[0].Object; len(got) != mostText {
		t.Errorf("%d bytes", len(got))
	}
}
