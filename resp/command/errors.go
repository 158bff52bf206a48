package command

// Texts that clients can be told. Where Redis has one it is Redis 7's, as client code matches on it. Those with a %s, %q or %d are filled
// in by who answers with them.
const (
	ErrSyntax         = "ERR syntax error"
	ErrNotInteger     = "ERR value is not an integer or out of range"
	ErrNoSuchKey      = "ERR no such key"
	ErrSameKey        = "ERR source and destination objects are the same"
	ErrNotBetween     = "ERR value is out of range, value must between %d and %d"
	ErrWrongType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrArity          = "ERR wrong number of arguments for '%s' command"
	ErrOOM            = "OOM command not allowed when used memory > 'maxmemory'."
	ErrHashField      = "ERR '%s' is no limit and its state"
	ErrNoPolicy       = "NOPOLICY no such policy '%s'"
	ErrDBIndex        = "ERR DB index is out of range"
	ErrInvalidExpire  = "ERR invalid expire time in '%s' command"
	ErrExpireNX       = "ERR NX and XX, GT or LT options at the same time are not compatible"
	ErrExpireGTLT     = "ERR GT and LT options at the same time are not compatible"
	ErrExpireOption   = "ERR Unsupported option %s"
	ErrInvalidCursor  = "ERR invalid cursor"
	ErrObjectFreq     = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	ErrPatternLong    = "ERR a pattern with ? or [ has at most %d bytes"
	ErrKeysInside     = "ERR KEYS would go through too much in a transaction or script: use SCAN"
	ErrUnknownCommand = "ERR unknown command '%.128s', with args beginning with: %s"

	ErrBadCommand     = "ERR Invalid command specified"
	ErrBadCommandArgs = "ERR Invalid number of arguments specified for command"
	ErrBadCommandKeys = "ERR Invalid arguments specified for command"
	ErrNoKeysCommand  = "ERR The command has no key arguments"

	ErrLease           = "ERR a lease must be between 1 and %d ms"
	ErrLogMax          = "ERR invalid limit: count '%d': algo=log keeps at most %d calls (--log-max)"
	ErrPolicyColon     = "ERR invalid policy name '%s': expected no colon at its end, such as 'api' or 'api:cust42'"
	ErrPolicyName      = "ERR invalid policy name: expected 1 to 128 bytes without spaces"
	ErrRuleNet         = "ERR invalid net '%s': expected an address and its bits, such as 10.0.0.0/8"
	ErrRulePattern     = "ERR a pattern has at most %d bytes"
	ErrRuleStar        = "ERR a pattern with CIDR is what stands before the address, without *"
	ErrSettle          = "ERR n must be between 0 and 2147483647"
	ErrBusy            = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrStoreDown       = "STOREDOWN %s"
	ErrTooManyPolicies = "ERR there are %d policies, which is the most there may be"
	ErrTooManyRules    = "ERR there are %d rules, which is the most there may be"

	ErrShutdownSave    = "ERR Errors trying to SHUTDOWN. Check logs."
	ErrNoShutdown      = "ERR No shutdown in progress."
	ErrSaving          = "ERR Background save already in progress"
	ErrRewriting       = "ERR Background append only file rewriting already in progress"
	ErrBgsaveRewriting = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
	ErrEngineKeeps     = "ERR %s is not for a server with --store: the engine keeps the keys"

	// ErrOption names an option of one of celld's own commands that is unknown, given twice or without its value.
	ErrOption = "ERR unknown, repeated or unfinished option '%s'"
)
