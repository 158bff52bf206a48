package users

// The texts of errors that only these commands give. They are Redis 7's where Redis has one, as client code matches on them. The caller
// fills in %s, %q and %d.
const (
	errRule          = "ERR Error in ACL SETUSER modifier '%s': %s"
	errDefaultUser   = "ERR The 'default' user cannot be removed"
	errCategory      = "ERR Unknown category '%.128s'"
	errDryRunUser    = "ERR User '%s' not found"
	errDryRunCommand = "ERR Command '%s' not found"
	errACLArgs       = "ERR unknown subcommand or wrong number of arguments for '%.128s'. Try ACL HELP."
	errGenPass       = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
	errACLFile       = "ERR This Redis instance is not configured to use an ACL file. Start celld with --aclfile (CELLD_ACLFILE) to keep users in a file."
	errACLLoad       = "ERR %s WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	ErrACLSave       = "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
)
