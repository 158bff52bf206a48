package peers

import (
	"slices"
	"strings"

	"celld/integration_test/harness"
)

// better is what celld answers, step by step, where redis-cell 0.5.0 is wrong.
type better struct {
	replies []string
	why     string
	keyGone bool // and no key is there afterwards
}

const (
	whyNegative = "a negative burst, count or period means nothing; redis-cell limits by a negative limit, or allows where two are negative"
	whyOverflow = "the product leaves int64 nanoseconds; redis-cell lets it wrap, which frees the key or locks it for centuries"
	whyRefund   = "a refund past full is clamped at full; redis-cell fails and leaves a key for ever"
	whyExact    = "remaining is exact and never above the limit; redis-cell counts whole microseconds"
)

// betterThanVectors lists every case of vectors.json in which celld differs from redis-cell 0.5.0, all quirks among them.
var betterThanVectors = map[string]better{
	"negative quantity on a fresh key": {harness.FiveReplies("0 16 16 -1 0"), whyRefund, true},
	"refund beyond full":               {append(harness.FiveReplies("0 6 5 -1 60"), harness.FiveReplies("0 6 6 -1 0", "0 6 6 -1 0")...), whyRefund, true},

	"negative count":                    {outOfRange("count -1"), whyNegative, true},
	"negative period":                   {outOfRange("period -60"), whyNegative, true},
	"negative count and period":         {append(outOfRange("count -1", "count -1"), harness.FiveReplies("0 6 5 -1 60")...), whyNegative, false},
	"negative count, burst 0":           {outOfRange("count -1"), whyNegative, true},
	"negative period, burst 0":          {outOfRange("period -60"), whyNegative, true},
	"max_burst -2":                      {outOfRange("max_burst -2", "max_burst -2", "max_burst -2"), whyNegative, true},
	"max_burst -2147483648":             {outOfRange("max_burst -2147483648"), whyNegative, true},
	"max_burst -2, quantity -5":         {outOfRange("max_burst -2"), whyNegative, true},
	"negative count, quantity 0":        {outOfRange("count -1"), whyNegative, true},
	"negative count and negative burst": {outOfRange("max_burst -5"), whyNegative, true},

	"CL.THROTTLE K -2147483648 1 60":               {outOfRange("max_burst -2147483648"), whyOverflow, true},
	"CL.THROTTLE K 9223372036854775807 1 60":       {outOfRange("max_burst 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K 9223372036854775806 1 60":       {outOfRange("max_burst 9223372036854775806"), whyOverflow, true},
	"CL.THROTTLE K 9223372036854775807 1 60 0":     {outOfRange("max_burst 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K -9223372036854775808 1 60":      {outOfRange("max_burst -9223372036854775808"), whyOverflow, true},
	"CL.THROTTLE K 9223372036 1 1":                 {outOfRange("max_burst 9223372036"), whyOverflow, true},
	"CL.THROTTLE K 153722867 1 60":                 {outOfRange("max_burst 153722867"), whyOverflow, true},
	"CL.THROTTLE K 4611686018427387904 1 1":        {outOfRange("max_burst 4611686018427387904"), whyOverflow, true},
	"CL.THROTTLE K 15 1 9223372037":                {outOfRange("period 9223372037"), whyOverflow, true},
	"CL.THROTTLE K 15 1 9223372036854775807":       {outOfRange("period 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K 1 1 9223372036854775807":        {outOfRange("period 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K 15 30 60 9223372036854775807":   {outOfRange("quantity 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K 15 30 60 -9223372036854775808":  {outOfRange("quantity -9223372036854775808"), whyOverflow, true},
	"CL.THROTTLE K 15 30 60 4611686018427387904":   {outOfRange("quantity 4611686018427387904"), whyOverflow, true},
	"CL.THROTTLE K 15 1 60 307445734561825861":     {outOfRange("quantity 307445734561825861"), whyOverflow, true},
	"CL.THROTTLE K 15 30 9223372036854775807":      {outOfRange("period 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K 2147483647 1 2147483647":        {outOfRange("max_burst 2147483647"), whyOverflow, true},
	"CL.THROTTLE K 0 1 9223372036854775807":        {outOfRange("period 9223372036854775807"), whyOverflow, true},
	"CL.THROTTLE K" + strings.Repeat(" "+max64, 4): {outOfRange("period " + max64), whyOverflow, true},

	"CL.THROTTLE K 1000 600001 1":    {harness.FiveReplies("0 1001 1000 -1 0"), whyExact, false},
	"CL.THROTTLE K 1000000 300000 1": {harness.FiveReplies("0 1000001 1000000 -1 0"), whyExact, false},
	"CL.THROTTLE K 1000000 501000 1": {harness.FiveReplies("0 1000001 1000000 -1 0"), whyExact, false},
	"CL.THROTTLE K 10 2000000 1":     {harness.FiveReplies("0 11 10 -1 0"), whyExact, false},
	"CL.THROTTLE K 1000 1000001 1":   {harness.FiveReplies("0 1001 1000 -1 0"), whyExact, false},
	"CL.THROTTLE K 10 999999999 1":   {harness.FiveReplies("0 11 10 -1 0"), whyExact, false},
	"CL.THROTTLE K 1 1000000000 1":   {harness.FiveReplies("0 2 1 -1 0"), whyExact, false},

	"a value that is not UTF-8": {
		append([]string{"-ERR value is not an integer or out of range\r\n"}, harness.FiveReplies("0 5 4 -1 720")...),
		"a key holds a TAT and nothing else; redis-cell takes any value and fails, or dies, on reading it", false,
	},
}

const max64 = "9223372036854775807"

// outOfRange are raw errors, each for a parameter and its value.
func outOfRange(parameters ...string) []string {
	raw := slices.Clone(parameters)
	for i, parameter := range parameters {
		raw[i] = "-Cell error: Store error: Out of range: " + parameter + "\r\n"
	}
	return raw
}
