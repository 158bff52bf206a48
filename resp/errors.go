package resp

import (
	"fmt"

	"celld/resp/command"
)

// Texts that a client can be told are in this file, except those of families, which are in package command, and wire's of bytes that are no
// command: Redis 7's wording where Redis has one, as client code matches on it. Texts with a %s or %q are filled in by the caller.
const (
	errSyntax            = command.ErrSyntax
	errNotInteger        = command.ErrNotInteger
	errNotPositive       = "ERR value is out of range, must be positive"
	errNotBetween        = command.ErrNotBetween
	errNotFloat          = "ERR value is not a valid float"
	errWrongType         = command.ErrWrongType
	errUnknownSubcommand = "ERR unknown subcommand '%.128s'. Try %s HELP."
	errArity             = command.ErrArity
	errInternal          = "ERR internal error, the connection is closed"

	errNoAuth        = "NOAUTH Authentication required."
	errNoPermCommand = "NOPERM this user has no permissions to run the '%s' command"
	errNoPermKey     = "NOPERM this user has no permissions to access one of the keys used as arguments"
	errNoPermExec    = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: %s"
	errScriptNoPerm  = "ERR The user executing the script can't run this command or subcommand"
	errScriptNoKey   = "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	errProtectedMode = "DENIED celld is running in protected mode because it listens beyond the loopback interface and has no password. " +
		"Only connections from the loopback interface are served. Set a password (--requirepass-file, CELLD_REQUIREPASS), " +
		"or listen on loopback only (--bind), or, where the network itself keeps strangers out, use --protected-mode no."
	errLoading    = "LOADING Redis is loading the dataset in memory"
	errMisconf    = "MISCONF Errors writing to the AOF file: %s"
	errSpeaksTLS  = "ERR this port takes TLS only"
	errMaxClients = "ERR max number of clients reached"

	errThrottleUsage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	errThrottleParse = "Cell error: Store error: Couldn't parse as integer: "
	errThrottleZero  = "Cell error: Store error: Zero rates are not supported"
	errThrottleRange = "Cell error: Store error: Out of range: %s %d"
	errOOM           = command.ErrOOM

	errGCRAPeriod   = "ERR period must be > 0 and < 1e12"
	errGCRATokens   = "ERR Missing TOKENS value"
	errGCRAOverflow = "ERR GCRA limiting uses microsecond accuracy. Combination of period, tokens_per_period and %s would cause an overflow"

	errCost            = "ERR cost must be between 0 and 2147483647"
	errGive            = "ERR n must not be negative"
	errFull            = "ERR FULL is not an option of CL.MTAKE: its reply has an array for each pair as it is"
	errTakeModes       = "ERR PEEK, UPTO, FORCE, RESERVE and WAIT options at the same time are not compatible"
	errWaitMax         = "ERR WAIT and RESERVE take from 0 to %d ms (--wait-max)"
	errMaxWaiters      = "ERR too many calls wait already (--max-waiters)"
	errReserve         = "ERR RESERVE cannot book ahead with algo=slide, log or conc"
	errLease           = command.ErrLease
	errLeaseConc       = "ERR LEASE is not for a limit with algo=conc, whose period is the lease"
	errLeaseName       = "ERR ID must have 1 to %d bytes"
	errNoLease         = "ERR BIND and ID need a lease: LEASE, or a limit with algo=conc"
	errBound           = "ERR this connection has too many bound leases"
	errPolicyGone      = "NOPOLICY the policy was removed while the call waited"
	errTooManyLimits   = "ERR a key has at most %d limits at once"
	errTwoLimits       = "ERR two limits differ only in count or burst, and so share their state"
	errPairs           = "ERR the number of pairs must be between 1 and %d"
	errPairsMissing    = "ERR fewer pairs of key and limit than their number says"
	errPolicyLine      = "expected a name and a limit without spaces, such as 'api 100/1m', and after them at most a # and a comment"
	errTooManyPolicies = command.ErrTooManyPolicies

	errNested         = "ERR MULTI calls can not be nested"
	errExecNoMulti    = "ERR EXEC without MULTI"
	errDiscardNoMulti = "ERR DISCARD without MULTI"
	errWatchInMulti   = "ERR WATCH inside MULTI is not allowed"
	errNotInMulti     = "ERR Command not allowed inside a transaction"
	errExecAbort      = "EXECABORT Transaction discarded because of previous errors."
	errExecRejected   = "EXECABORT Transaction discarded because of: %s"

	errManyArgs       = "ERR at most %d arguments are taken"
	errUnblocked      = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	errManyClients    = "The operating system is not able to handle the specified number of clients, try with %d"
	errKeysMany       = "ERR Number of keys can't be greater than number of args"
	errKeysNegative   = "ERR Number of keys can't be negative"
	errNoScript       = "NOSCRIPT No matching script. Please use EVAL."
	errScriptUnknown  = "ERR Unknown Redis command called from script: '%.128s'" // Redis does not name it
	errScriptArity    = "ERR Wrong number of args calling Redis command from script"
	errScriptRefused  = "ERR This Redis command is not allowed from script"
	errScriptReadOnly = "ERR Write commands are not allowed from read-only scripts."
	errScriptFlush    = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errScriptKilled   = "ERR Script killed by user with SCRIPT KILL..."
	errScriptStopping = "ERR Script ended as the server stops"
	errNotBusy        = "NOTBUSY No scripts in execution right now."
	errUnkillable     = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errBusy           = command.ErrBusy
)

const (
	errStoreDown   = command.ErrStoreDown
	errStoreSent   = "STOREDOWN %s; the call may have been counted"
	errCrossSlot   = "CROSSSLOT Keys in request don't hash to the same slot. Give them a common hash tag, such as {user}:a and {user}:b"
	errFlushAll    = "ERR with --store, FLUSHALL and FLUSHDB need --store-prefix, as the engine may hold others' keys"
	errWatchEngine = "ERR with --store, WATCH is not supported: use EVAL, whose script reads and changes its keys at one instant"
	errFarInside   = "ERR with --store, %s is not allowed in MULTI and scripts: it concerns the whole engine"
	errUndeclared  = "ERR with --store, a script must be given its keys: '%s' is not among its KEYS"
)

func formatError(format string, args ...any) string { return fmt.Sprintf(format, args...) }
