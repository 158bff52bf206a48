package decide

import "celld/resp/command/argument"

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errThrottleUsage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	ErrThrottleParse = "Cell error: Store error: Couldn't parse as integer: "
	errThrottleZero  = "Cell error: Store error: Zero rates are not supported"
	errThrottleRange = "Cell error: Store error: Out of range: %s %d"
	errCost          = "ERR cost must be between 0 and 9007199254740991"
	errFull          = "ERR FULL is not an option of CL.MTAKE: its reply always has an array for each pair"
	errGive          = "ERR n must not be negative"
	errLeaseName     = "ERR ID must have 1 to %d bytes"
	errNoLease       = "ERR BIND and ID need a lease: LEASE, or a limit with algo=conc"
	errNamed         = "ERR no limit is named '%s': this call names %s"
	errNoneNamed     = "ERR no limit is named '%s': a limit has its name behind it, such as 100/1m,name=%[1]s"
	errOf            = "ERR OF follows COST and a number, such as COST 5 OF tokens"
	errPairs         = "ERR the number of pairs must be between 1 and %d"
	errPairsMissing  = "ERR fewer pairs of key and limit than their number says"
	errReserve       = "ERR RESERVE cannot book ahead with algo=%s"
	errSeveralLimits = "ERR policy '%s' has several limits: use CL.TAKE"
	errWhole         = argument.ErrNotInteger + ": %s takes a whole number%s, not '%s'"
	errNoPairs       = argument.ErrNotInteger + ": CL.MTAKE begins with the number of pairs: CL.MTAKE 2 key limit key limit"
	errMeantPolicy   = "%s; the policy is @%s"
	errMeantSeveral  = "%s; several limits are several arguments"
	errUpToOf        = "ERR UPTO is for one cost of all limits, and COST n OF for several"
	errTakeModes     = "ERR PEEK, UPTO, FORCE, RESERVE and WAIT options at the same time are not compatible"
	ErrTooManyLimits = "ERR a key has at most %d limits at once"
	errDecrement     = "ERR decrement would overflow"
	errByFloat       = "ERR BYFLOAT is not supported: keys hold integers"
	errENX           = "ERR ENX flag requires an expiration"
	errBounds        = "ERR LBOUND can't be greater than UBOUND"
	errIncrement     = "ERR %s is not an integer or out of range"
	ErrWaitMax       = "ERR WAIT and RESERVE take from 0 to %d ms (--wait-max)"
)
