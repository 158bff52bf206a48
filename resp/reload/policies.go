package reload

import (
	"errors"
	"fmt"

	"celld/resp/command/limit"
	"celld/store/policy"
)

// KeepPolicies sets the policies and rules of the File that differ from the store's. Their callers keep their state.
func (r *Reloader) KeepPolicies() error {
	if refused, err := r.Store().KeepPolicies(r.File.Policies); err != nil {
		return r.tooMany(limit.PolicyLine(r.File.Policies[refused]), limit.ErrTooManyPolicies, policy.MaxPolicies)
	}
	if refused, err := r.Store().KeepRules(r.File.Rules); err != nil {
		return r.tooMany(limit.RuleLine(r.File.Rules[refused]), limit.ErrTooManyRules, policy.MaxRules)
	}
	return nil
}

// reloadPolicies sets what the file has now, and returns the names of policies and the rules that are new or changed. Those that have left
// the file stay. An error changes nothing.
func (r *Reloader) reloadPolicies() (c changes, err error) {
	file, err := limit.ReadFile(r.Config.PoliciesFile.Get(), r.Config.LogMax.Get())
	if err != nil {
		return c, err
	}
	defer r.Alone()() // so nobody sees half of it
	if r.Stopping() {
		return c, errors.New("the server is stopping")
	}
	before, after := map[string]string{}, map[string]string{}
	there := r.InForce.PolicyCount()
	for _, p := range file.Policies {
		after[p.Name] = p.String()
		if old := r.InForce.PolicyNamed(p.Name).Lasting(); old != nil { // a temporary one stays in force
			before[p.Name] = old.String()
		} else if there++; there > policy.MaxPolicies {
			return c, r.tooMany(limit.PolicyLine(p), limit.ErrTooManyPolicies, policy.MaxPolicies)
		}
	}
	held := map[string]string{}
	for _, rule := range r.InForce.Rules(0) {
		held[limit.RuleLine(rule)] = fmt.Sprint(rule.UntilNS)
	}
	there = len(held)
	for _, rule := range file.Rules {
		line := limit.RuleLine(rule)
		after[line] = "0"
		if until, is := held[line]; is {
			before[line] = until
		} else if there++; there > policy.MaxRules {
			return c, r.tooMany(line, limit.ErrTooManyRules, policy.MaxRules)
		}
	}
	r.File = file
	return changesOf(before, after), r.KeepPolicies()
}

func (r *Reloader) tooMany(line, text string, most int) error {
	return fmt.Errorf("set '%s' of %s: %s", line, r.Config.PoliciesFile.Get(), fmt.Sprintf(text, most))
}
