package reload

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"celld/persistence/regular"
	"celld/resp/command/limit"
	"celld/store/policy"
)

const errPolicyLine = "expected a name and its limits, such as 'api 100/1m', and after them at most a # and a comment"

// mostBadLines is how many bad lines of a file are told one by one.
const mostBadLines = 20

// ReadPolicies reads a file of policies. Each line has a name and limits, as in CL.POLICY SET. What follows a word that begins with #
// is a comment. The error joins one for each bad line.
func ReadPolicies(path string, logMax int64) (list []*policy.Policy, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	defer f.Close()
	var bad []error
	wrong := 0
	tell := func(line int, problem string) {
		if wrong++; wrong <= mostBadLines {
			bad = append(bad, fmt.Errorf("read the policies: %s:%d: %s", path, line, strings.TrimPrefix(problem, "ERR ")))
		}
	}
	seen := map[string]int{}
	lines, n := bufio.NewScanner(f), 0
	for lines.Scan() {
		n++
		text := lines.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // the byte order mark that some editors write
		}
		p, problem := parsePolicyLine(text, logMax)
		switch {
		case problem != "":
			tell(n, problem)
		case p == nil:
		case seen[p.Name] > 0:
			tell(n, fmt.Sprintf("'%s' is also in line %d", p.Name, seen[p.Name]))
		default:
			seen[p.Name] = n
			list = append(list, p)
		}
		if len(list) > policy.MaxPolicies {
			tell(n, fmt.Sprintf("there are more than %d policies", policy.MaxPolicies))
			break
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		tell(n+1, fmt.Sprintf("a line has at most %d bytes", bufio.MaxScanTokenSize-1))
	case err != nil:
		tell(n+1, err.Error())
	}
	if more := wrong - len(bad); more > 0 {
		bad = append(bad, fmt.Errorf("read the policies: %s: more bad lines: %d", path, more))
	}
	if wrong > 0 {
		return nil, errors.Join(bad...)
	}
	return list, nil
}

// parsePolicyLine reads a line. One that has only a comment, or nothing, is no policy.
func parsePolicyLine(text string, logMax int64) (p *policy.Policy, problem string) {
	words := strings.Fields(text)
	if comment := slices.IndexFunc(words, func(word string) bool { return word[0] == '#' }); comment >= 0 {
		words = words[:comment]
	}
	switch len(words) {
	case 0:
		return nil, ""
	case 1:
		return nil, errPolicyLine
	}
	name, problem := limit.PolicyName([]byte(words[0]))
	if problem != "" {
		return nil, problem
	}
	limits, problem := limit.PolicyLimits(name, words[1:], logMax)
	return policy.New(name, limits...), problem
}

// KeepPolicies sets those of Policies that differ from the store's. Their callers keep their state.
func (r *Reloader) KeepPolicies() error {
	if refused, err := r.Store().KeepPolicies(r.Policies); err != nil {
		return r.tooMany(r.Policies[refused].Name)
	}
	return nil
}

// reloadPolicies sets what the file has now, and returns the names of policies that are new or changed. Those that have left the file stay.
// An error changes nothing.
func (r *Reloader) reloadPolicies() (c changes, err error) {
	list, err := ReadPolicies(r.Config.PoliciesFile.Get(), r.Config.LogMax.Get())
	if err != nil {
		return c, err
	}
	defer r.Alone()() // so nobody sees half of it
	if r.Stopping() {
		return c, errors.New("the server is stopping")
	}
	before, after := map[string]string{}, map[string]string{}
	there := len(r.InForce.Policies())
	for _, p := range list {
		after[p.Name] = p.String()
		if old := r.InForce.PolicyNamed(p.Name); old != nil {
			before[p.Name] = old.String()
		} else if there++; there > policy.MaxPolicies {
			return c, r.tooMany(p.Name)
		}
	}
	r.Policies = list
	return changesOf(before, after), r.KeepPolicies()
}

func (r *Reloader) tooMany(name string) error {
	return fmt.Errorf("set the policy '%s' of %s: %s", name, r.Config.PoliciesFile.Get(),
		fmt.Sprintf(limit.ErrTooManyPolicies, policy.MaxPolicies))
}
