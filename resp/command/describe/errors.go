package describe

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	ErrBadCommand     = "ERR Invalid command specified"
	ErrBadCommandArgs = "ERR Invalid number of arguments specified for command"
	errBadCommandKeys = "ERR Invalid arguments specified for command"
	ErrNoKeysCommand  = "ERR The command has no key arguments"
)
