package argument

// The texts of errors about arguments, which several families give. They are Redis 7's where Redis has one, as client code matches on
// them. The caller fills in %s, %q and %d.
const (
	ErrSyntax        = "ERR syntax error"
	ErrNotInteger    = "ERR value is not an integer or out of range"
	ErrNotBetween    = "ERR value is out of range, value must between %d and %d"
	ErrNoPolicy      = "NOPOLICY no such policy '%s'"
	ErrDBIndex       = "ERR DB index is out of range"
	ErrInvalidExpire = "ERR invalid expire time in '%s' command"
	ErrPatternLong   = "ERR a pattern with ? or [ has at most %d bytes"
	ErrLease         = "ERR a lease must be between 1 and %d ms"
	ErrLogMax        = "ERR invalid limit: count '%d': algo=log keeps at most %d calls (--log-max)"
	ErrStoreDown     = "STOREDOWN %s"
	ErrOption        = "ERR unknown option '%s': expected %s"
	ErrOptionTwice   = "ERR option %s is given twice"
	ErrManyCosts     = "ERR at most %d costs have names"
	ErrLimitName     = "ERR invalid name '%s': expected 1 to 32 letters, digits, _ or -"
	ErrOptionValue   = "ERR option %s needs a value"
)
