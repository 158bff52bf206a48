package envoy

import (
	"math"
	"strconv"
	"strings"

	"celld/resp/envoy/message"
)

// response tells what has been decided.
func (a *answer) response() *message.Response {
	r := &message.Response{Code: message.OK, Statuses: make([]message.Status, len(a.asked))}
	quotas, fullQuotas, over := 0, 0, 0
	for i := range a.asked {
		it := &a.asked[i]
		r.Statuses[i] = it.status()
		if it.Limit != nil {
			a.stats.count(it, a.options.NearLimit)
		}
		if it.unlimited {
			continue
		}
		quota, full := a.options.Quota || it.Limit != nil && it.Quota, r.Statuses[i].Code == message.Over
		switch {
		case quota && full:
			fullQuotas++
		case full:
			over++
		}
		if quota {
			quotas++
		}
	}
	if over > 0 || quotas > 0 && quotas == fullQuotas {
		r.Code = message.Over
	}
	if len(a.options.Headers) > 0 {
		r.Headers = a.headers(r.Statuses)
	}
	if r.Code == message.Over && a.options.Shadow {
		r.Code = message.OK
		a.stats.shadowed.Add(1)
	}
	if a.options.Metadata {
		r.Metadata = a.metadata(r.Statuses)
	}
	return r
}

// status is the answer for a descriptor.
func (it *asked) status() message.Status {
	switch {
	case it.unlimited:
		return message.Status{Code: message.OK, Remaining: math.MaxUint32}
	case it.Limit == nil:
		return message.Status{Code: message.OK}
	}
	s := message.Status{Code: message.OK, Limit: it.shown, Remaining: uint32(min(it.remaining, math.MaxUint32)), Reset: it.reset}
	if it.over {
		s.Remaining = 0
		if !it.Shadow {
			s.Code = message.Over
		}
	}
	return s
}

// headers tell of the last status that is over and no quota, else of the first with the least left.
func (a *answer) headers(statuses []message.Status) []message.Header {
	tightest, least := -1, uint32(math.MaxUint32)
	for i := range statuses {
		s, it := &statuses[i], &a.asked[i]
		switch {
		case s.Limit == nil:
		case s.Code == message.Over && !a.options.Quota && !it.Quota:
			tightest, least = i, 0
		case s.Remaining < least:
			tightest, least = i, s.Remaining
		}
	}
	if tightest < 0 {
		return nil
	}
	s, names := &statuses[tightest], a.options.Headers
	return []message.Header{
		{Name: names[0], Value: strconv.FormatUint(uint64(s.Limit.Requests), 10)},
		{Name: names[1], Value: strconv.FormatUint(uint64(s.Remaining), 10)},
		{Name: names[2], Value: strconv.FormatInt(s.Reset, 10)},
	}
}

// metadata repeats the request, with the metadata of all limits that have let it pass.
func (a *answer) metadata(statuses []message.Status) map[string]any {
	descriptors := make([]any, len(a.Descriptors))
	passed := map[string]any{}
	for i := range a.Descriptors {
		descriptors[i] = described(&a.Descriptors[i])
		if it := &a.asked[i]; it.Limit != nil && it.Metadata != nil && statuses[i].Code != message.Over {
			merge(passed, it.Metadata.Fields)
		}
	}
	fields := map[string]any{"domain": a.Domain, "descriptors": descriptors}
	if a.Hits != 0 {
		fields["hitsAddend"] = float64(a.Hits)
	}
	if len(passed) > 0 {
		fields["metadata"] = passed
	}
	return fields
}

func described(d *message.Descriptor) map[string]any {
	entries := make([]any, len(d.Entries))
	for i, e := range d.Entries {
		entries[i] = e.Key + "=" + e.Value
	}
	fields := map[string]any{"entries": entries}
	if l := d.Limit; l != nil {
		var parts []string
		if l.Requests != 0 {
			parts = append(parts, "requests_per_unit:"+strconv.FormatUint(uint64(l.Requests), 10))
		}
		if l.Unit != message.Unknown {
			parts = append(parts, "unit:"+l.Unit.String())
		}
		fields["limit"] = strings.Join(parts, " ")
	}
	if d.Hits != nil {
		fields["hitsAddend"] = float64(*d.Hits)
	}
	return fields
}

// merge adds fields that are not there yet, and so for maps in maps. from stays as it is.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		there, exists := into[key]
		both, areMaps := there.(map[string]any)
		switch {
		case exists && isMap && areMaps:
			merge(both, inner)
		case exists:
		case isMap:
			fresh := make(map[string]any, len(inner))
			merge(fresh, inner)
			into[key] = fresh
		default:
			into[key] = value
		}
	}
}
