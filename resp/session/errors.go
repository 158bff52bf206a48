package session

import (
	"fmt"

	"celld/resp/command"
	"celld/resp/command/argument"
)

// Texts that a client can be told are in this file, except those of families, which are in package command, and wire's of bytes that are no
// command: Redis 7's wording where Redis has one, as client code matches on it. Texts with a %s or %q are filled in by the caller.
const (
	errNotInteger        = argument.ErrNotInteger
	errWrongType         = command.ErrWrongType
	errUnknownSubcommand = "ERR unknown subcommand '%.128s'. Try %s HELP."

	errNoAuth        = "NOAUTH Authentication required."
	errNoPermExec    = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: %s"
	errScriptNoPerm  = "ERR The user executing the script can't run this command or subcommand"
	errScriptNoKey   = "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	errProtectedMode = "DENIED celld is running in protected mode because it listens beyond the loopback interface and has no password. " +
		"Only connections from the loopback interface are served. Set a password (--requirepass-file, CELLD_REQUIREPASS), " +
		"or listen on loopback only (--bind), or, where the network itself keeps strangers out, use --protected-mode no."
	errMaxClients = "ERR max number of clients reached"

	errBound = "ERR this connection has too many bound leases"

	errNested         = "ERR MULTI calls can not be nested"
	errExecNoMulti    = "ERR EXEC without MULTI"
	errDiscardNoMulti = "ERR DISCARD without MULTI"
	errWatchInMulti   = "ERR WATCH inside MULTI is not allowed"
	errNotInMulti     = "ERR Command not allowed inside a transaction"
	errExecAbort      = "EXECABORT Transaction discarded because of previous errors."
	errExecRejected   = "EXECABORT Transaction discarded because of: %s"

	errKeysMany       = "ERR Number of keys can't be greater than number of args"
	errKeysNegative   = "ERR Number of keys can't be negative"
	errNoScript       = "NOSCRIPT No matching script. Please use EVAL."
	errScriptUnknown  = "ERR Unknown Redis command called from script: '%.128s'" // Redis does not name it
	errScriptArity    = "ERR Wrong number of args calling Redis command from script"
	errScriptRefused  = "ERR This Redis command is not allowed from script"
	errScriptReadOnly = "ERR Write commands are not allowed from read-only scripts."
	errScriptFlush    = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errScriptKilled   = "ERR Script killed by user with SCRIPT KILL..."
	errScriptStopping = "ERR Script ended: the server is stopping"
	errNotBusy        = "NOTBUSY No scripts in execution right now."
	errUnkillable     = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errBusy           = command.ErrBusy
)

const (
	errWatchEngine = "ERR with --store, WATCH is not supported: use EVAL, whose script reads and changes its keys at one instant"
	errScanInside  = "ERR with --store, %s is not allowed in MULTI and scripts: it concerns the whole engine"
	errUndeclared  = "ERR with --store, a script must be given its keys: '%s' is not among its KEYS"
)

func formatError(format string, args ...any) string { return fmt.Sprintf(format, args...) }
