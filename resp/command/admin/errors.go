package admin

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errShutdownSave    = "ERR Errors trying to SHUTDOWN. Check logs."
	ErrNoShutdown      = "ERR No shutdown in progress."
	ErrSaving          = "ERR Background save already in progress"
	ErrRewriting       = "ERR Background append only file rewriting already in progress"
	ErrBgsaveRewriting = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."
	ErrEngineKeeps     = "ERR %s is not for a server with --store: the engine keeps the keys"
)
