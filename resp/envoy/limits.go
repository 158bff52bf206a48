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

// shapes are those of windows of the clock, by unit.
var shapes = func() (shapes [message.Week + 1]cell.Shape) {
	for unit := message.Second; int(unit) < len(shapes); unit++ {
		limit, err := cell.ParseLimit(fmt.Sprintf("1/%ds,algo=window,align=clock", unit.Period()/time.Second))
		if err != nil {
			panic(err)
		}
		shapes[unit] = limit.Shape
	}
	return shapes
}()

// window is a limit that denies. One of 0 is that of 1: celld knows none that lets nothing pass.
func window(l *message.Limit) cell.Limit {
	return cell.LimitOf(shapes[l.Unit], cell.Params{Count: max(1, int64(l.Requests))})
}

// counter counts calls, also over the limit, as envoyproxy/ratelimit does with INCRBY, and is compared with the limit after that. It is
// stored as that limit, so that CL.SHOW tells what Envoy does.
func counter(l *message.Limit) cell.Limit {
	limit := window(l)
	return limit.Counting()
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
