package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// Settings of the engine that cannot be used, or cannot be set, are told of and change nothing.
func TestSettingsThatCannotBeUsed(t *testing.T) {
	var log lines
	s := newStore(Options{Log: log.log()})
	if err := s.PoliciesUnknown(); err == nil {
		t.Error("they are known without an engine")
	}
	s.policies.replace(map[string]string{versionField: "5", sinceField: "5", "p": "5/1s 5 @p/gcra/1s", "q": "5/1s",
		"r": "odd 5 @r/gcra/1s", "s": "5/1s x @s/gcra/1s"})
	if n := strings.Count(log.String(), "cannot be used"); n != 3 || s.Policies.PolicyNamed("p") == nil ||
		len(s.Policies.Settings(policy.PolicySetting)) != 1 {
		t.Errorf("the log says\n%s", log.String())
	}
	for name, value := range map[string]string{"q": "5/1s", "r": "odd 5 @r/gcra/1s", "": "5/1s 5 @p/gcra/1s"} {
		if err := s.put(policy.PolicySetting, name, value, ""); (err == nil) != (name == "") {
			t.Errorf("%q: %v", value, err)
		}
	}
	answered := make(chan error, 1)
	s.Link.Break("", &link.DownError{Cause: "known"})
	for range 2 { // the next one is first
		s.DeletePolicy("p", func(_ bool, err error) { answered <- err })
		if err := <-answered; !linktest.IsDown(err) {
			t.Error(err)
		}
	}
	var list []*policy.Policy
	for i := range policy.MaxPolicies + 1 {
		list = append(list, policy.New(fmt.Sprint("p", i), *linktest.Literal(t, "5/1s")))
	}
	if at, err := s.KeepPolicies(list, nil); !errors.Is(err, policy.ErrTooMany) || at != policy.MaxPolicies-2 { // there are two already
		t.Error(at, err)
	}
	if err := s.put(policy.PolicySetting, "more", "5/1s 5 @p/gcra/1s", ""); !errors.Is(err, policy.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}

	e := celldtest.NewAiling(t)
	s = newTestStore(t, e.Socket, Options{Log: log.log(), Time: func() int64 { return 7_999_999 }})
	e.Answers("*3\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n")
	s.policies.answers, s.rules.answers = true, true
	_, _ = s.KeepPolicies(list[:1], nil) // it is in this process
	celldtest.Eventually(t, "the log tells of it", func() bool {
		return strings.Contains(log.String(),
			`"A setting of the file is not on the engine.","key":"celld:policies","field":"p0"`)
	})
	if text := e.Commands()[0]; !strings.HasSuffix(text, " 7") {
		t.Errorf("the time is not that of the test: %s", text)
	}
	for lasts, ms := range map[time.Duration]string{0: "0", 1: "1", time.Millisecond: "1", time.Millisecond + 1: "2",
		1<<63 - 1: "9223372036855"} {
		if _, err := linktest.Told(t, func(done func(bool, error)) {
			s.PutRule(lasting(policy.Rule{Pattern: "r"}, lasts), 0,
				done)
		}); !errors.Is(err, policy.ErrTooMany) {
			t.Error(err)
		}
		words := strings.Fields(e.Commands()[e.Count()-1])
		if got := words[len(words)-3]; got != ms {
			t.Errorf("%v lasts %s ms, want %s", lasts, got, ms)
		}
	}
}
