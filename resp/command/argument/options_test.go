package argument

import (
	"strings"
	"testing"
)

// Options are told in any case and order, and refused for what their declaration says: in Redis's words, or in those of celld.
func TestOptions(t *testing.T) {
	own := Options{Flags: []string{"PEEK", "FORCE", "FULL"}, Valued: []string{"COST", "WAIT"}, OneOf: [][]string{{"PEEK", "FORCE", "WAIT"}},
		Clash: "ERR one of them"}
	redis := Options{Flags: []string{"NX", "XX", "ENX", "PERSIST"}, Valued: []string{"EX", "PX"}, Refusal: "ERR no %s",
		OneOf: [][]string{{"NX", "XX"}, {"PERSIST", "EX", "PX"}, {"PERSIST", "ENX"}}}
	once := redis
	once.Once = true
	for _, tt := range []struct {
		options     *Options
		words, want string // what was set, or the error
	}{
		{&own, "", ""}, {&own, "cost 5 Full peek", "COST=5 FULL PEEK"}, {&own, "COST WAIT", "COST=WAIT"},
		{&own, "COST", "ERR option COST needs a value"},
		{&own, "FULL nosuch", "ERR unknown option 'nosuch': expected COST, WAIT, PEEK, FORCE or FULL"},
		{&own, "FULL COST 1 FULL", "ERR option FULL is given twice"}, {&own, "WAIT 5 FULL FORCE", "ERR one of them"},
		{&redis, "nx EX 5", "NX EX=5"}, {&redis, "NX NX EX 1 EX 2", "NX NX EX=1 EX=2"}, {&redis, "XX NX", ErrSyntax},
		{&redis, "EX 1 PX 1", ErrSyntax}, {&redis, "ENX EX 1", "ENX EX=1"}, {&redis, "ENX PERSIST", ErrSyntax},
		{&redis, "EX 1 PERSIST", ErrSyntax}, {&redis, "nosuch", "ERR no nosuch"}, {&redis, "EX", "ERR no EX"},
		{&once, "NX NX", "ERR no NX"}, {&once, "NX EX 1", "NX EX=1"},
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(tt.words) {
			args = append(args, []byte(word))
		}
		var set []string
		got := tt.options.Read(args, func(option string, value []byte) string {
			if value != nil {
				option += "=" + string(value)
			}
			set = append(set, option)
			return ""
		})
		if got == "" {
			got = strings.Join(set, " ")
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.words, got, tt.want)
		}
	}
	if got := own.Read([][]byte{[]byte("PEEK")}, func(string, []byte) string { return "ERR its own" }); got != "ERR its own" {
		t.Errorf("an error of an option: %q", got)
	}
}
