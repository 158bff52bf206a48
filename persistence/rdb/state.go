package rdb

import (
	"math"

	"celld/store"
	"celld/store/policy"
)

const nsPerMS = 1_000_000

// SettingNames are the names of settings in the files.
var SettingNames = [policy.SettingKinds]string{policy.PolicySetting: "celld-policy", policy.RuleSetting: "celld-rule",
	policy.IDSetting: "celld-lease"}

// persistedMS is how long after its TAT a key without an expiry expires in a file. Without that it would come back as a count, which never
// ends, where the TAT has passed before the file is read. Other programs, which round a TAT up to ms, come to 1 ms after it at most.
const persistedMS = 2

// ExpiryMS returns the expiry of a state as files hold it: in Unix milliseconds, rounded up, or -1 for a count without one. Of a TAT it is
// not after the TAT, or persistedMS after it.
func ExpiryMS(st store.Value) int64 {
	at := uint64(st.ExpiryNS)
	switch {
	case st.ExpiryNS == store.NoExpiry && st.IsCount():
		return -1
	case st.ExpiryNS == store.NoExpiry:
		return ceilMS(st.TAT) + persistedMS
	case st.ExpiryNS == store.AtTAT || !st.IsCount() && st.TAT < at:
		at = st.TAT
	}
	return ceilMS(at)
}

func ceilMS(ns uint64) int64 { return int64(ns/nsPerMS + min(ns%nsPerMS, 1)) }

// WithExpiry returns the state of a key with this expiry in a file; -1: none. An expiry at the TAT or later makes no difference to a TAT,
// so it becomes AtTAT, which takes the least memory in the store. A count with the expiry of a TAT is one that has passed: as AtTAT, it is
// over.
func WithExpiry(st store.Value, expiryMS int64) store.Value {
	end := ceilMS(max(st.TAT, uint64(max(st.Count, 0))))
	switch {
	case expiryMS < 0 || !st.IsCount() && expiryMS == end+persistedMS:
		st.ExpiryNS = store.NoExpiry
	case end > 0 && (expiryMS == end || expiryMS == end+persistedMS) || !st.IsCount() && expiryMS > end:
		st.ExpiryNS = store.AtTAT
	case expiryMS > math.MaxInt64/nsPerMS: // a TAT can be later than an expiry
		st.ExpiryNS = math.MaxInt64
	default:
		st.ExpiryNS = max(expiryMS, 1) * nsPerMS
	}
	return st
}
