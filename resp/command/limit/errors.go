package limit

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errPolicyColon     = "ERR invalid policy name '%s': expected no colon at its end, such as 'api' or 'api:cust42'"
	errPolicyName      = "ERR invalid policy name '%s': expected 1 to 64 letters, digits, _, -, . and :"
	errRuleNet         = "ERR invalid net '%s': expected an address and its bits, such as 10.0.0.0/8"
	errRulePattern     = "ERR a pattern has at most %d bytes"
	errRuleStar        = "ERR with CIDR, the pattern is the text before the address, without *"
	errSettle          = "ERR n must be between 0 and 2147483647"
	ErrTooManyPolicies = "ERR there are %d policies already, and no more are allowed"
	errTooManyRules    = "ERR there are %d rules already, and no more are allowed"
)
