package decide

import (
	"bytes"
	"fmt"
	"hash/maphash"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// Server is the parts of the server that deciding needs.
type Server struct {
	Table           *memory.Store // of the process: its policies are those in force, and it hashes keys
	Store           store.Store   // of the keys
	Counts          *decisions.Rows
	Top             *decisions.Top
	Commands        *command.Table
	LogMax, WaitMax *config.Param[int64]
}

// Host is a command.Host that has calls decided.
type Host interface {
	command.Host

	// Decider reads and answers them.
	Decider() *Decider

	// Decide asks the limiter for a call whose handler has read its shape, and answers it, now or later.
	Decide(c *command.Call, f *Shape)

	// Failed counts a call that was answered with an error.
	Failed(row *command.Row, reply []byte)
}

// edition is what limits were read by. They hold while it is the same.
type edition struct {
	policies uint64 // their version
	logMax   int64
}

func (s *Server) edition() edition { return edition{s.Table.PoliciesVersion(), s.LogMax.Get()} }

// limit is a limit that a call names.
type limit struct {
	*cell.Limit
	policy *policy.Limit // nil: a literal
	row    *decisions.Row
	pair   int   // of CL.MTAKE
	own    bool  // the call names its cost: see store.Call
	cost   int64 // with own
}

// beginsPolicy reports the first limit of a policy. Its row counts the calls that the policy allows.
func (l *limit) beginsPolicy() bool { return l.policy != nil && l.policy == l.policy.Policy.Limits[0] }

// limits keeps the limits of recent calls by their text, so that a limit is parsed once. It serves the calls of which no shape is kept:
// with leases, of several keys, in scripts. Without it, a CL.MTAKE of two keys takes 1.5 times as many instructions, a CL.GIVE as well, a
// script's CL.TAKE 1.1 times, and each limit allocates 3 times. Its size is fixed, so clients cannot make it grow.
type limits struct {
	*Server
	seed  maphash.Seed
	known [256]struct {
		text   []byte
		limits []limit
		edition
	}
}

const maxKnownText = 128

// lookUp reads a limit, a literal, or @ and the name of a policy, which has several. It also returns the text of an error, or "". What it
// returns is valid until the next call.
func (l *limits) lookUp(text []byte, now edition) ([]limit, string) {
	known := &l.known[maphash.Bytes(l.seed, text)%uint64(len(l.known))]
	if len(text) > 0 && bytes.Equal(known.text, text) && known.edition == now {
		return known.limits, ""
	}
	found, problem := l.parse(text, now.logMax)
	if problem == "" && len(text) <= maxKnownText {
		known.text, known.limits, known.edition = append(known.text[:0], text...), found, now
	}
	return found, problem
}

func (s *Server) parse(text []byte, logMax int64) (found []limit, problem string) {
	if name, isPolicy := bytes.CutPrefix(text, []byte("@")); isPolicy {
		p := s.Table.Policy(name)
		if p == nil {
			return nil, argument.NoPolicy(s.Store, name)
		}
		for _, l := range p.Limits {
			found = append(found, limit{Limit: &l.Limit, policy: l, row: s.Counts.Of(l)})
		}
		return found, ""
	}
	literal, problem := argument.ParseLiteral(text, logMax)
	if problem != "" {
		return nil, problem
	}
	return []limit{{Limit: &literal, row: s.Counts.Literal(literal.Algo)}}, ""
}

// readLimit adds a limit, or those of a policy, to a shape. pair is that of CL.MTAKE.
func (f *Shape) readLimit(l *limits, text []byte, pair int) (problem string) {
	if len(f.limits) == 0 { // before the limits are read: they may change meanwhile
		f.edition = l.Server.edition()
	}
	found, problem := l.lookUp(text, f.edition)
	if problem == "" && len(f.limits)+len(found) > store.MaxLimits {
		problem = fmt.Sprintf(ErrTooManyLimits, store.MaxLimits)
	}
	switch {
	case problem == "":
	case bytes.ContainsAny(text, " \t"):
		return fmt.Sprintf(errMeantSeveral, problem)
	case len(text) > 0 && l.Table.PolicyNamed(string(text)) != nil:
		return fmt.Sprintf(errMeantPolicy, problem, text)
	default:
		return problem
	}
	for i := range found {
		one := found[i]
		one.pair = pair
		f.limits = append(f.limits, one)
	}
	return ""
}
