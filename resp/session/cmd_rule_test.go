package session

import (
	"math"
	"testing"

	"celld/store/memory"
	"celld/store/policy"
)

// However far the end of a rule is, a file that has it can be read.
func TestARuleForVeryLong(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for _, restNS := range []int64{0, 5, 999_998, 1_000_001, 3_000_000} {
		w.nowNS = math.MaxInt64 - 100e9 - restNS
		if got := p.do("CL.RULE", "ADD", "DENY", "k", "EX", "100"); got != "-ERR invalid expire time in 'cl.rule' command\r\n" {
			t.Errorf("%d ns: %q", restNS, got)
		}
		p.do("CL.RULE", "ADD", "DENY", "k", "EX", "99")
		rule := policy.Setting{Kind: policy.RuleSetting, Name: "DENY - k"}
		text, _ := w.Store.SettingText(rule)
		next := memory.New(memory.Options{})
		if err := next.PutSetting(rule, text, w.nowNS); err != nil || len(next.Rules(w.nowNS)) != 1 {
			t.Errorf("%d ns: %q is read as %v, %v", restNS, text, next.Rules(w.nowNS), err)
		}
		if got, want := p.do("CL.RULE", "LIST"), "*1\r\n*4\r\n$4\r\nDENY\r\n$1\r\nk\r\n$0\r\n\r\n:99\r\n"; got != want {
			t.Errorf("%d ns: %q", restNS, got)
		}
	}
}
