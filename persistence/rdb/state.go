package rdb

import (
	"errors"
	"math"
	"math/bits"
	"strconv"

	"celld/store"
	"celld/store/policy"
)

const nsPerMS = 1_000_000

// SettingNames are the names of settings in the files.
var SettingNames = [policy.SettingKinds]string{policy.PolicySetting: "celld-policy", policy.RuleSetting: "celld-rule",
	policy.IDSetting: "celld-lease"}

// ExpiryMS returns the expiry of a state as files hold it: in Unix milliseconds, rounded up, or -1 for none.
func ExpiryMS(st store.Value) int64 {
	switch st.ExpiryNS {
	case store.NoExpiry:
		return -1
	case store.AtTAT:
		return ceilMS(st.TAT)
	}
	return ceilMS(uint64(st.ExpiryNS))
}

func ceilMS(ns uint64) int64 { return int64(ns/nsPerMS + min(ns%nsPerMS, 1)) }

// StateOf returns the state of a key with this TAT and expiry in a file; -1: no expiry. An expiry at the TAT or later makes no
// difference, so it becomes AtTAT, which takes the least memory in the store.
func StateOf(tat uint64, expiryMS int64) store.Value {
	switch {
	case expiryMS < 0:
		return store.Value{TAT: tat, ExpiryNS: store.NoExpiry}
	case expiryMS >= ceilMS(tat):
		return store.Value{TAT: tat}
	case expiryMS > math.MaxInt64/nsPerMS: // a TAT can be later than an expiry
		return store.Value{TAT: tat, ExpiryNS: math.MaxInt64}
	}
	return store.Value{TAT: tat, ExpiryNS: max(expiryMS, 1) * nsPerMS}
}

// AppendTAT writes a TAT as SET takes and GET shows it.
func AppendTAT(b []byte, tat uint64) []byte { return strconv.AppendUint(b, tat, 10) }

// errNoTAT reports a text that is no TAT.
var errNoTAT = errors.New("not an integer")

// ParseTAT reads what AppendTAT writes. The error is errNoTAT.
func ParseTAT(text []byte) (tat uint64, err error) {
	if len(text) == 0 || len(text) > 20 || text[0] == '0' && len(text) > 1 {
		return 0, errNoTAT
	}
	for _, c := range text {
		c -= '0'
		high, low := bits.Mul64(tat, 10)
		sum, carry := bits.Add64(low, uint64(c), 0)
		if c > 9 || high+carry != 0 {
			return 0, errNoTAT
		}
		tat = sum
	}
	return tat, nil
}
