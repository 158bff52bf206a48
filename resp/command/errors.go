package command

// The texts of errors that any command may get. They are Redis 7's where Redis has one, as client code matches on them. The caller fills
// in %s and %q. Texts about arguments are in package argument, and those of a family in its errors.go.
const (
	ErrWrongType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrArity          = "ERR wrong number of arguments for '%s' command"
	errManyArgs       = "ERR at most %d arguments are taken"
	ErrOOM            = "OOM command not allowed when used memory > 'maxmemory'."
	ErrOOMKeys        = "OOM command not allowed when keys > 'max-keys'."
	errUnknownCommand = "ERR unknown command '%.128s', with args beginning with: %s"

	ErrBusy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

	// ErrNoConnection answers a call from within the process.
	ErrNoConnection = "ERR this command is about a client's connection, and there is none"
)
