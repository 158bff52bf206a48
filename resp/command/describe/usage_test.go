package describe

import (
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	text := func(list []usageArg) string {
		var show func([]usageArg) string
		show = func(list []usageArg) string {
			var parts []string
			for _, a := range list {
				s := a.kind + ":" + a.name
				if a.token != "" {
					s += "=" + a.token
				}
				if len(a.parts) > 0 {
					s += "(" + show(a.parts) + ")"
				}
				if a.optional {
					s += "?"
				}
				if a.multiple {
					s += "+"
				}
				parts = append(parts, s)
			}
			return strings.Join(parts, " ")
		}
		return show(list)
	}
	for usage, want := range map[string]string{
		"":                         "",
		"key max_burst [quantity]": "key:key integer:max_burst integer:quantity?",
		"key ...":                  "key:key+",
		"[NX|XX] [COUNT count]":    "oneof:nx(pure-token:nx=NX pure-token:xx=XX)? integer:count=COUNT?",
		"[EX seconds|KEEPTTL]":     "oneof:seconds(integer:seconds=EX pure-token:keepttl=KEEPTTL)?",
		"[AUTH username password]": "block:username(string:username=AUTH string:password)?",
		"[ID client-id ...]":       "integer:client-id=ID?+",
		"parameter value ...":      "string:parameter string:value+",
		"addr|[ID client-id] [TYPE NORMAL|MASTER]": "oneof:addr(string:addr integer:client-id=ID?) " +
			"block:type(pure-token:type=TYPE oneof:normal(pure-token:normal=NORMAL pure-token:master=MASTER))?",
	} {
		if got := text(parseUsage(usage)); got != want {
			t.Errorf("%q\n got %s\nwant %s", usage, got, want)
		}
	}
}
