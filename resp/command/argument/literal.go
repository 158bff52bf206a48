package argument

import (
	"bytes"
	"fmt"

	"celld/cell"
	"celld/store/policy"
)

// MaxLeaseMS is the longest life of a lease: that of a limit's period.
const MaxLeaseMS = cell.MaxPeriodNS / 1_000_000

// NoPolicy is the error of a name that no policy has: NOPOLICY, or STOREDOWN where the store may have one. No --store-failure can decide on
// such a call, as its limit is not known.
func NoPolicy(s policy.Keeper, name []byte) string {
	if err := s.PoliciesUnknown(); err != nil {
		return fmt.Sprintf(ErrStoreDown, err)
	}
	return fmt.Sprintf(ErrNoPolicy, ShortText(name))
}

// ParseLiteral reads a limit. One with algo=log may keep at most logMax calls. It also returns the text of an error, or "".
func ParseLiteral(text []byte, logMax int64) (cell.Limit, string) {
	limit, err := cell.ParseLimit(string(text))
	if err != nil {
		return limit, "ERR " + err.Error()
	}
	if limit.KeepsCalls() && limit.Count > logMax {
		return limit, fmt.Sprintf(ErrLogMax, limit.Count, logMax)
	}
	return limit, ""
}

// IsLimit tells a limit from an option: a limit begins with a digit or @, or has a slash.
func IsLimit(arg []byte) bool {
	return len(arg) > 0 && ('0' <= arg[0] && arg[0] <= '9' || arg[0] == '@') || bytes.IndexByte(arg, '/') >= 0
}

// ParseName reads the name of limits. It also returns the text of an error, or "".
func ParseName(text []byte) (n cell.Name, problem string) {
	n, ok := cell.ParseName(string(text))
	if !ok {
		problem = fmt.Sprintf(ErrLimitName, ShortText(text))
	}
	return n, problem
}
