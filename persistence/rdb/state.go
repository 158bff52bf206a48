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

// ExpiryMS returns the expiry of a state as files hold it: in Unix milliseconds, rounded up, or -1 for none. It is not after the TAT:
// otherwise a TAT that passes before the file is read would come back as a count.
func ExpiryMS(st store.Value) int64 {
	at := uint64(st.ExpiryNS)
	switch {
	case st.ExpiryNS == store.NoExpiry:
		return -1
	case st.ExpiryNS == store.AtTAT || !st.IsCount() && st.TAT < at:
		at = st.TAT
	}
	return ceilMS(at)
}

func ceilMS(ns uint64) int64 { return int64(ns/nsPerMS + min(ns%nsPerMS, 1)) }

// WithExpiry returns the state of a key with this expiry in a file; -1: none. An expiry at the TAT or later makes no difference to a TAT,
// so it becomes AtTAT, which takes the least memory in the store.
func WithExpiry(st store.Value, expiryMS int64) store.Value {
	switch {
	case expiryMS < 0:
		st.ExpiryNS = store.NoExpiry
	case !st.IsCount() && expiryMS >= ceilMS(st.TAT):
		st.ExpiryNS = store.AtTAT
	case expiryMS > math.MaxInt64/nsPerMS: // a TAT can be later than an expiry
		st.ExpiryNS = math.MaxInt64
	default:
		st.ExpiryNS = max(expiryMS, 1) * nsPerMS
	}
	return st
}
