package acl

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// All users share a number of bytes. When a user changes, its old rules no longer count, and the last byte fits.
func TestUsersAreBounded(t *testing.T) {
	us := NewUsers(testTable())
	set := func(name string, bytes int) error {
		return us.Set(name, []string{"reset", "~" + strings.Repeat("x", bytes)})
	}
	if err := set("a", 9<<20); err != nil {
		t.Fatal(err)
	}
	if err := us.Set("a", []string{"on"}); err != nil {
		t.Errorf("a change of a large user: %v", err)
	}
	if err := set("b", 9<<20); err != errFull || us.Get("b") != nil {
		t.Errorf("two of 9 MB: %v", err)
	}
	if err := set("a", 1); err != nil {
		t.Fatal(err)
	}
	left := mostBytes - us.bytes
	for more, want := range map[int]error{1: errFull, 0: nil} {
		if err := set("a", 1+left+more); err != want {
			t.Errorf("%d more than fit: %v", more, err)
		}
	}
	if err := set("a", 1+left); err != nil || us.bytes != mostBytes {
		t.Errorf("%v, %d bytes", err, us.bytes)
	}
	if err := us.Set("b", nil); err != errFull {
		t.Error(err)
	}
	if us.Delete("a") == nil || us.Get("a") != nil || us.Set("b", nil) != nil {
		t.Error("the room of who is gone")
	}
	if us.Delete("a") != nil || us.Delete(DefaultName) != nil || us.Get(DefaultName) != us.Default {
		t.Error("deleted who is not there, or must stay")
	}
}

func TestSetRefuses(t *testing.T) {
	us := NewUsers(testTable())
	many := slices.Repeat([]string{"on"}, mostRules)
	for _, name := range []string{"a b", "a\x00", "a\n"} {
		if err := us.Set(name, nil); err != errName {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := us.Set("a", many); err != nil {
		t.Error(err)
	}
	if err := us.Set("a", append(many, "on")); err != errRules {
		t.Error(err)
	}
	err := us.Set("a", []string{"on", "+nosuch"})
	rule := (*RuleError)(nil)
	if !errors.As(err, &rule) || rule.Rule != "+nosuch" || !errors.Is(err, errUnknown) || err.Error() != "+nosuch: "+string(errUnknown) {
		t.Errorf("%v", err)
	}
}

func TestUsersByName(t *testing.T) {
	us := NewUsers(testTable())
	for _, name := range []string{"c", "a", "b", "z"} {
		if err := us.Set(name, []string{"on"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := us.Set("a", []string{"off"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range us.Sorted() {
		names = append(names, u.Name())
	}
	if want := []string{"a", "b", "c", "default", "z"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if lines := us.Lines(); !slices.Equal(slices.Sorted(maps.Keys(lines)), names) || lines["b"] != "user b on resetchannels -@all" ||
		lines["a"] != "user a off resetchannels -@all" {
		t.Errorf("%q", lines)
	}
	if got := us.FirstOn([]string{"none", "a", "c", "b"}); got != us.Get("c") {
		t.Errorf("%v", got)
	}
	if got := us.FirstOn([]string{"none", "a"}); got != nil {
		t.Errorf("%v", got)
	}
	for range 2 { // no lock is kept
		us.Lines()
		us.Delete("z")
		if err := us.Set("z", nil); err != nil {
			t.Error(err)
		}
	}
}

// Connections need not authenticate where the user default is on and any password will do.
func TestOpen(t *testing.T) {
	us := NewUsers(testTable())
	for _, test := range []struct {
		rule string
		open bool
	}{{"on", true}, {"off", false}, {"on", true}, {">p", false}, {"nopass", true}, {"resetpass", false}} {
		if err := us.Set(DefaultName, []string{test.rule}); err != nil || us.Open() != test.open {
			t.Errorf("%s: open %v, %v", test.rule, us.Open(), err)
		}
		r := us.Default.Rights()
		if r.On() != slices.Contains(r.Flags(), "on") || r.NoPass() != slices.Contains(r.Flags(), "nopass") || test.rule == "nopass" &&
			len(r.Passwords()) > 0 {
			t.Errorf("%s: %q", test.rule, r)
		}
	}
}

// A file without the user default makes it what it is at the start, whatever it has been made since.
func TestAFileWithoutDefault(t *testing.T) {
	us := NewUsers(testTable())
	if err := us.Set(DefaultName, []string{"-@all", "resetkeys", "~x", ">p"}); err != nil {
		t.Fatal(err)
	}
	f, err := parse(us.Table(), "f", "user a on")
	if err != nil {
		t.Fatal(err)
	}
	if us.Replace(f); us.Default.Line() != "user default on nopass ~* &* +@all" {
		t.Error(us.Default.Line())
	}
}

// Each key of a user with patterns is checked, and no key of a user who may use all keys.
func TestOnKey(t *testing.T) {
	us := NewUsers(testTable())
	if err := us.Set("a", []string{"~both", "%R~r", "%W~w"}); err != nil {
		t.Fatal(err)
	}
	may := us.Get("a").Rights().OnKey()
	for _, test := range []struct {
		key           string
		reads, writes bool
		want          bool
	}{
		{"both", true, true, true}, {"r", true, false, true}, {"r", false, true, false}, {"r", true, true, false},
		{"w", true, false, false}, {"w", false, true, true}, {"w", true, true, false}, {"w", false, false, true}, {"x", false, false,
			false}, {"x", true, true, false},
	} {
		if got := may([]byte(test.key), test.reads, test.writes); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if err := us.Set("a", []string{"allkeys", "-@all"}); err != nil || us.Get("a").Rights().OnKey() != nil ||
		!us.Get("a").Rights().MayTouch([]byte("any"), Reads|Writes) {
		t.Error("who may use all keys is asked", err)
	}
	if err := us.Set("a", []string{"resetkeys"}); err != nil || us.Get("a").Rights().OnKey()([]byte("both"), false, false) ||
		us.Get("a").Rights().MayTouch([]byte("both"), 0) {
		t.Error("who may use none", err)
	}
}
