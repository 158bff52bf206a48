package keys

import "celld/resp/command/argument"

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errNoSuchKey     = "ERR no such key"
	errSameKey       = "ERR source and destination objects are the same"
	errNoLock        = argument.ErrNotInteger + "; for a lock, send CL.TAKE key 1/30s,algo=conc"
	errHashField     = "ERR '%s' is not a limit and its state"
	errExpireNX      = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT    = "ERR GT and LT options at the same time are not compatible"
	errExpireOption  = "ERR Unsupported option %s"
	errInvalidCursor = "ERR invalid cursor"
	errObjectFreq    = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	ErrKeysInside    = "ERR KEYS would go through too much in a transaction or script: use SCAN"
)
