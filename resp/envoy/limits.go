package envoy

import (
	"fmt"
	"strings"
	"time"

	"celld/cell"
	"celld/resp/door"
	"celld/resp/envoy/message"
	"celld/store"
	"celld/store/policy"
)

// Limits is the store's port, as a server opens it to calls that do not come by RESP.
type Limits interface {
	// Decide decides up to store.MaxTakes requests, and counts them by their verdicts.
	Decide(requests []store.TakeRequest, verdict func(i int) door.Verdict) error

	// Policy finds the policy of a name; nil: there is none.
	Policy(name string) *policy.Policy
}

// counters are the limits that count the calls of a unit. Nothing is ever over them. What is configured is compared with what they have
// counted, as envoyproxy/ratelimit does with INCRBY: so a limit that changes, or that a request brings along, finds the calls that were
// counted before, where celld would scale them.
var counters = windows(cell.MaxCost)

// windows are limits of a count in windows of the clock, by unit.
func windows(count int64) (limits [message.Week + 1]*cell.Limit) {
	for unit := message.Second; int(unit) < len(limits); unit++ {
		limit, err := cell.ParseLimit(fmt.Sprintf("%d/%ds,algo=window,align=clock", count, unit.Period()/time.Second))
		if err != nil {
			panic(err)
		}
		limits[unit] = &limit
	}
	return limits
}

// window is a limit that denies.
func window(l *message.Limit) *cell.Limit {
	limit := cell.LimitOf(counters[l.Unit].Shape, cell.Params{Count: int64(l.Requests)})
	return &limit
}

// appendKey appends the key of a descriptor's count: envoy|domain|key=value|key=value. What separates is escaped as in URLs, so that no two
// descriptors share a key; those of envoyproxy/ratelimit, joined by _, do. The name of an algorithm stands behind them, as what it leaves
// is no count. Limits that are taken together have the domain in braces: they are no counts either, and on a Cluster they must stand in
// one slot.
func appendKey(b []byte, domain string, entries []message.Entry, shared []string, algorithm string, together bool) []byte {
	b = append(b, "envoy|"...)
	if together {
		b = append(b, '{')
	}
	b = appendEscaped(b, domain, "%|{}")
	if together {
		b = append(b, '}')
	}
	for i, e := range entries {
		b = appendEscaped(append(b, '|'), e.Key, "%|=")
		value := e.Value
		if shared != nil && shared[i] != "" {
			value = shared[i]
		}
		b = appendEscaped(append(b, '='), value, "%|")
	}
	if algorithm != "" {
		name, _, _ := strings.Cut(algorithm, ",")
		b = appendEscaped(append(b, '|'), name, "%|=")
	}
	return b
}

// seenIn is what rules see of a descriptor beside its key: addresses that Envoy has read from connections. nil: it has none.
func seenIn(entries []message.Entry) (seen *policy.Seen) {
	for _, e := range entries {
		if e.Key != "remote_address" && e.Key != "masked_remote_address" {
			continue
		}
		if seen == nil {
			seen = &policy.Seen{}
		}
		seen.Addresses = append(seen.Addresses, []byte(e.Value))
	}
	return seen
}

func appendEscaped(b []byte, text, special string) []byte {
	for i := range len(text) {
		c := text[i]
		escaped := c < ' ' || c == 0x7f
		for j := range len(special) {
			escaped = escaped || c == special[j]
		}
		if escaped {
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
