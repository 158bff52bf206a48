//go:build all

package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// random makes configurations and requests. Few keys and values, so that many meet.
type random struct {
	*rand.Rand
	old bool // for a reference that has no metadata, no * before the end of a value, and another idea of quotas

	// A file has metadata, or statistics that tell values apart: together, the reference forgets the metadata.
	metadata bool
}

var (
	keys   = []string{"a", "b", "c"}
	values = []string{"", "x", "xy", "xyz", "b", "10.1.2.3", "a:b|c"}
	units  = []string{"second", "minute", "hour", "day", "week", "month", "year", "MINUTE", "Hour"}
)

func (r *random) pick(list []string) string { return list[r.IntN(len(list))] }
func (r *random) one(in int) bool           { return r.IntN(in) == 0 }

// config is a file of one domain.
func (r *random) config(domain string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\n", domain)
	names := []string{}
	r.metadata = !r.old && r.one(2)
	r.descriptors(&b, "", 3, &names)
	return b.String()
}

func (r *random) descriptors(b *strings.Builder, indent string, depth int, names *[]string) {
	fmt.Fprintf(b, "%sdescriptors:\n", indent)
	var nodes []string
	for range 1 + r.IntN(4) {
		key, value := r.pick(append([]string{"a_b"}, keys...)), r.pick(values)
		if r.one(3) {
			value = r.pick(patterns(r.old))
		}
		node := key
		if value != "" {
			node += "_" + value
		}
		if slices.Contains(nodes, node) {
			continue
		}
		nodes = append(nodes, node)
		fmt.Fprintf(b, "%s- key: %s\n", indent, key)
		in := indent + "  "
		if value != "" {
			fmt.Fprintf(b, "%svalue: %q\n", in, value)
		}
		for _, flag := range []string{"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric"} {
			if r.one(6) && !(r.metadata && strings.HasSuffix(flag, "metric")) && !(r.old && flag == "quota_mode") {
				fmt.Fprintf(b, "%s%s: true\n", in, flag)
			}
		}
		if strings.Contains(value, "*") && r.one(2) {
			fmt.Fprintf(b, "%sshare_threshold: true\n", in)
		}
		if r.metadata && r.one(2) { // without maps in it: merging them, the reference changes its own configuration
			fmt.Fprintf(b, "%smetadata: {%s: %d, list: [1, yes, q%d], only%d: 1.5}\n", in, r.pick(keys), r.IntN(3), r.IntN(3), r.IntN(3))
		}
		if !r.one(4) {
			r.limit(b, in, names)
		}
		if depth > 1 && r.one(2) {
			r.descriptors(b, in, depth-1, names)
		}
	}
}

func patterns(old bool) []string {
	if old {
		return []string{"*", "x*", "xy*", "b*"}
	}
	return []string{"*", "x*", "xy*", "*z", "x*z", "*y*", "b*", "*.1.*"}
}

func (r *random) limit(b *strings.Builder, in string, names *[]string) {
	fmt.Fprintf(b, "%srate_limit:\n", in)
	if r.one(8) {
		fmt.Fprintf(b, "%s  unlimited: true\n", in)
	} else {
		fmt.Fprintf(b, "%s  unit: %s\n%s  requests_per_unit: %d\n", in, r.pick(units), in, r.IntN(12))
	}
	own := ""
	if r.one(3) {
		own = fmt.Sprintf("n%d", r.IntN(4))
		fmt.Fprintf(b, "%s  name: %s\n", in, own)
		*names = append(*names, own)
	}
	if len(*names) > 0 && r.one(4) {
		if replaced := r.pick(*names); replaced != own {
			fmt.Fprintf(b, "%s  replaces: [{name: %s}]\n", in, replaced)
		}
	}
}

// request asks for a domain.
func (r *random) request(domain string) *ratelimit.RateLimitRequest {
	q := &ratelimit.RateLimitRequest{Domain: domain}
	if r.one(3) {
		q.HitsAddend = uint32(r.IntN(5))
	}
	for range 1 + r.IntN(3) {
		d := &common.RateLimitDescriptor{}
		for range 1 + r.IntN(3) {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: r.pick(keys), Value: r.pick(values)})
		}
		if r.one(5) {
			d.HitsAddend = wrapperspb.UInt64(uint64(r.pickN(0, 0, 1, 3, 1000)))
		}
		if r.one(12) {
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(r.IntN(8)),
				Unit: envoytype.RateLimitUnit(1 + r.IntN(6))}
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return q
}

func (r *random) pickN(of ...int) int { return of[r.IntN(len(of))] }
