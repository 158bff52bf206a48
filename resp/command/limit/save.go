package limit

import (
	"fmt"
	"slices"
	"strings"

	"celld/persistence/regular"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store/policy"
)

// text is the File with these policies and rules in place of its own. Lines that stay right stay as they are, so do comments. New lines
// come at the end.
func (f *File) text(policies []*policy.Policy, rules []policy.Rule) string {
	missing := map[string]string{} // by line.name: the limits, nothing for a rule
	for _, p := range policies {
		missing[p.Name] = p.String()
	}
	for _, r := range rules {
		missing[RuleLine(r)] = ""
	}
	var b strings.Builder
	for _, l := range f.lines {
		limits, there := missing[l.name]
		switch {
		case l.name != "" && !there:
		case l.policy != nil && l.policy.String() != limits:
			b.WriteString(l.text[:l.at] + limits + l.text[l.end:])
		default:
			b.WriteString(l.text)
		}
		delete(missing, l.name)
	}
	add := func(name, text string) {
		if _, is := missing[name]; !is {
			return
		}
		if last := b.String(); last != "" && !strings.HasSuffix(last, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(text + "\n")
	}
	for _, p := range policies {
		add(p.Name, PolicyLine(p))
	}
	for _, r := range rules {
		add(RuleLine(r), RuleLine(r))
	}
	return b.String()
}

// save writes the policies and rules that last to the file. An error has changed nothing.
func (s *Server) save() error {
	f, err := ReadFile(s.File, s.LogMax)
	if err != nil {
		return err
	}
	rules := slices.DeleteFunc(s.InForce.Rules(0), func(r policy.Rule) bool { return r.UntilNS != 0 })
	var policies []*policy.Policy
	for _, p := range s.InForce.Policies() {
		if p = p.Lasting(); p != nil {
			policies = append(policies, p)
		}
	}
	text := f.text(policies, rules)
	if _, err := parseFile(s.File, text, s.LogMax); err != nil { // earlier versions had other names
		return fmt.Errorf("a start could not read it: %w", err)
	}
	if err := regular.Rewrite(s.File, []byte(text)); err != nil {
		return err
	}
	s.Saved()
	return nil
}

// policySave reads and writes a file whose disk may be slow, so it works in a goroutine. The row forbids MULTI and scripts, which cannot
// wait for that.
func (f family) policySave(c *command.Call) {
	s := f.server()
	if s.File == "" {
		c.Error(errNoFile)
		return
	}
	if err := s.Store.PoliciesUnknown(); err != nil { // their lines would be dropped
		c.Error(argument.ErrStoreDown, err)
		return
	}
	c.Offload(false, func([][]byte) command.Work {
		return func() func(*command.Call) {
			f.saving.Lock()
			defer f.saving.Unlock()
			if err := s.save(); err != nil {
				text, _, _ := strings.Cut(err.Error(), "\n") // the first bad line
				return func(c *command.Call) { c.Error(errPolicySave, text) }
			}
			return (*command.Call).OK
		}
	})
}
