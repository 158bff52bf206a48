package resp

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"celld/cell"
	"celld/persistence/regular"
	"celld/store/policy"
)

// namedLimit is one line of the policies' file.
type namedLimit struct {
	name  string
	limit cell.Limit
}

// readPolicies reads a file of policies. Each line has a name and a limit, as in CL.POLICY SET; empty lines and lines that begin
// with # are skipped. The error names the line.
func readPolicies(path string, logMax int64) ([]namedLimit, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	defer f.Close()
	var list []namedLimit
	seen := map[string]int{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		wrong := func(text string) error {
			return fmt.Errorf("read the policies: %s:%d: %s", path, n, strings.TrimPrefix(text, "ERR "))
		}
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, wrong("expected a name and a limit")
		}
		name, problem := policyName([]byte(words[0]))
		if problem != "" {
			return nil, wrong(problem)
		}
		limit, problem := parseLiteral([]byte(words[1]), logMax)
		if problem != "" {
			return nil, wrong(problem)
		}
		if before := seen[name]; before > 0 {
			return nil, wrong(fmt.Sprintf("'%s' stands in line %d as well", name, before))
		}
		seen[name] = n
		if list = append(list, namedLimit{name, limit}); len(list) > policy.MaxPolicies {
			return nil, wrong(formatError("there are more than %d policies", policy.MaxPolicies))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the policies: %s: %w", path, err)
	}
	return list, nil
}

// setPolicies sets the policies of the file that differ from those in the store. What callers have used of them is kept.
func (srv *Server) setPolicies() error {
	if srv.engine != nil {
		return srv.keepPolicies()
	}
	for _, p := range srv.cfg.policies {
		if old := srv.store.PolicyNamed(p.name); old != nil && old.Limit == p.limit {
			continue
		}
		if _, err := srv.store.SetPolicy(p.name, p.limit, policy.Options{}); err != nil {
			return srv.tooManyPolicies(p.name)
		}
	}
	return nil
}

// reloadPolicies sets what the file has now, and returns the names of policies that are new or changed. Those that have left the file stay.
// An error changes nothing.
func (srv *Server) reloadPolicies() (c changes, err error) {
	list, err := readPolicies(srv.cfg.policiesFile.Get(), srv.cfg.logMax.Get())
	if err != nil {
		return c, err
	}
	defer srv.betweenScripts()() // so nobody sees half of it
	if srv.ending.Load() {
		return c, errors.New("the server is stopping")
	}
	before, after := map[string]string{}, map[string]string{}
	there := len(srv.store.Policies())
	for _, p := range list {
		after[p.name] = p.limit.String()
		if old := srv.store.PolicyNamed(p.name); old != nil {
			before[p.name] = old.Limit.String()
		} else if there++; there > policy.MaxPolicies {
			return c, srv.tooManyPolicies(p.name)
		}
	}
	srv.cfg.policies = list
	return changesOf(before, after), srv.setPolicies()
}

func (srv *Server) tooManyPolicies(name string) error {
	return fmt.Errorf("set the policy '%s' of %s: %s", name, srv.cfg.policiesFile.Get(), formatError(errTooManyPolicies, policy.MaxPolicies))
}

// keepPolicies has the engine have those of the file.
func (srv *Server) keepPolicies() error {
	list := make([]policy.Policy, len(srv.cfg.policies))
	for i, p := range srv.cfg.policies {
		list[i] = policy.Policy{Name: p.name, Limit: p.limit}
	}
	if srv.engine.KeepPolicies(list) != nil {
		return srv.tooManyPolicies(list[len(list)-1].Name)
	}
	return nil
}
