package reload

import (
	"fmt"

	"celld/resp/command/limit"
	"celld/store/policy"
)

// KeepPolicies sets the policies and rules of the file where they are not as it has them. The error names the first one that is not set,
// as there are too many.
func (r *Reloader) KeepPolicies() error { return r.keep(&r.File, nil) }

// keep is KeepPolicies of what only says, by the names of policies and of rules; nil: of all.
func (r *Reloader) keep(f *limit.File, only func(name string) bool) error {
	if refused, err := r.Store().KeepPolicies(f.Policies, only); err != nil {
		return r.tooMany(limit.PolicyLine(f.Policies[refused]), limit.ErrTooManyPolicies, policy.MaxPolicies)
	}
	if refused, err := r.Store().KeepRules(f.Rules, only); err != nil {
		return r.tooMany(limit.RuleLine(f.Rules[refused]), limit.ErrTooManyRules, policy.MaxRules)
	}
	return nil
}

// takePolicies sets what the file has otherwise than when it was last read. So what was set by CL.POLICY or CL.RULE since stays, and a line
// that is gone stays in force until somebody deletes it. It looks for room first, so that it sets all or nothing.
func (r *Reloader) takePolicies() (about []any, err error) {
	file, err := limit.ReadFile(r.Config.PoliciesFile.Get(), r.Config.LogMax.Get())
	if err != nil {
		return nil, err
	}
	defer r.Alone()() // so nobody sees half of it
	if r.Stopping() {
		return nil, errStopping
	}
	if err := r.room(&file); err != nil {
		return nil, err
	}
	before, after := linesOf(&r.File), linesOf(&file)
	fresh := map[string]bool{}
	for _, p := range file.Policies {
		fresh[p.Name] = before[p.Name] != after[p.Name]
	}
	for _, rule := range file.Rules {
		fresh[rule.Name()] = before[limit.RuleLine(rule)] == ""
	}
	if err := r.keep(&file, func(name string) bool { return fresh[name] }); err != nil {
		return nil, err
	}
	r.File = file
	c := changesOf(before, after)
	return c.attrs("still_in_force"), nil
}

// room returns an error if there are too many policies or rules to add those of a file.
func (r *Reloader) room(f *limit.File) error {
	there := r.InForce.PolicyCount()
	for _, p := range f.Policies {
		if r.InForce.PolicyNamed(p.Name) != nil {
			continue
		}
		if there++; there > policy.MaxPolicies {
			return r.tooMany(limit.PolicyLine(p), limit.ErrTooManyPolicies, policy.MaxPolicies)
		}
	}
	held := map[string]bool{}
	for _, rule := range r.InForce.Rules(0) {
		held[rule.Name()] = true
	}
	there = len(held)
	for _, rule := range f.Rules {
		if held[rule.Name()] {
			continue
		}
		if there++; there > policy.MaxRules {
			return r.tooMany(limit.RuleLine(rule), limit.ErrTooManyRules, policy.MaxRules)
		}
	}
	return nil
}

// linesOf are the lines of a file by the names of its policies; those of rules have no other name.
func linesOf(f *limit.File) map[string]string {
	lines := map[string]string{}
	for _, p := range f.Policies {
		lines[p.Name] = limit.PolicyLine(p)
	}
	for _, rule := range f.Rules {
		lines[limit.RuleLine(rule)] = limit.RuleLine(rule)
	}
	return lines
}

// savedPolicies notes what CL.POLICY SAVE has written.
func (r *Reloader) savedPolicies() {
	if file, err := limit.ReadFile(r.Config.PoliciesFile.Get(), r.Config.LogMax.Get()); err == nil {
		r.File = file
	}
}

func (r *Reloader) tooMany(line, text string, most int) error {
	return fmt.Errorf("set '%s' of %s: %s", line, r.Config.PoliciesFile.Get(), fmt.Sprintf(text, most))
}
