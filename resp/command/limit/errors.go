package limit

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errPolicyColon     = "ERR invalid policy name '%s': expected no colon at its end, such as 'api' or 'api:cust42'"
	errPolicyKeyword   = "a policy named '%s' is written 'policy %[1]s %[2]s'"
	errPolicyLine      = "expected a name and its limits, such as 'api 100/1m', and after them at most a # and a comment"
	errNoFile          = "ERR there is no file to save to: start celld with --policies FILE"
	errPolicyName      = "ERR invalid policy name '%s': expected 1 to 64 letters, digits, _, -, . and :"
	errPolicySave      = "ERR nothing is saved: %s"
	errQuotes          = "a quote is not closed, or not followed by a blank"
	errTop             = "ERR syntax error: expected [n] [policy] [BY DENIED|CALLS|NEAR] [LAST 1m|10m|START]"
	errRuleLine        = "expected the word rule, then allow, pause or deny, and a pattern, such as 'rule deny bad:*' or 'rule allow ip: CIDR 10.0.0.0/8'"
	errRuleIsNet       = "ERR a net stands behind CIDR, and before it what keys have before an address: \"\" CIDR %s"
	errRuleMiddle      = "ERR a * stands at the end of a pattern, for all that follows; write \\* for a star of the key"
	errRuleNet         = "ERR invalid net '%s': expected an address and its bits, such as 10.0.0.0/8"
	errRuleOfFileEX    = "EX is for CL.RULE ADD: a rule of the file has no end"
	errRulePattern     = "ERR a pattern has at most %d bytes"
	errRuleStar        = "ERR with CIDR, the pattern is the text before the address, without *"
	errRuleVerdict     = "ERR a rule is ALLOW, PAUSE or DENY, not '%s'"
	errSettle          = "ERR n must be between 0 and 9007199254740991"
	ErrTooManyPolicies = "ERR there are %d policies already, and no more are allowed"
	ErrTooManyRules    = "ERR there are %d rules already, and no more are allowed"

	warnRuleLetters = "line %d of --policies: ? and [ stand for themselves in '%s'; only * at the end stands for what follows"
)
