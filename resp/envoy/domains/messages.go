package domains

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"celld/resp/envoy/message"
)

// MessageName is the message that a domain is as a server tells it:
// https://github.com/envoyproxy/ratelimit/blob/main/api/ratelimit/config/ratelimit/v3/rls_conf.proto.
const MessageName = "ratelimit.config.ratelimit.v3.RateLimitConfig"

// ParseMessages reads a configuration of such messages, as Parse does of files. In place of a file's name, errors have the resource's.
func ParseMessages(resources []message.Resource, o Options) (*Set, error) {
	p := parser{set: &Set{domains: map[string]*node{}}, merge: o.Merge}
	for _, r := range resources {
		p.file = "a resource"
		if r.Type != MessageName {
			p.fail("expected %s, not '%.64s'", MessageName, r.Type)
			continue
		}
		var root yamlRoot
		if err := p.message(&root, r.Value); err != nil {
			p.fail("%v", err)
			continue
		}
		p.take(&root)
	}
	if len(p.errors) > 0 {
		return nil, errors.Join(p.errors...)
	}
	return p.set, nil
}

// message reads a RateLimitConfig.
func (p *parser) message(root *yamlRoot, data []byte) error {
	return message.Each(data, func(f message.Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			name := ""
			err := f.Text(&name)
			p.file = cmp.Or(name, p.file)
			return err
		case f.Is(2, protowire.BytesType):
			return f.Text(&root.Domain)
		case f.Is(3, protowire.BytesType):
			return p.descriptor(&root.Descriptors, f.Bytes, 1)
		}
		return nil
	})
}

const (
	// mostLevels is how deep descriptors may stand in each other.
	mostLevels = 100
	// mostDescriptors is how many a server may tell. A message of 4 MB has room for as many that have a limit and a key of five letters.
	// Two million empty ones of 2 bytes took 700 MB of memory.
	mostDescriptors = 250_000
)

// descriptor reads a RateLimitDescriptor.
func (p *parser) descriptor(to *[]yamlDescriptor, data []byte, level int) error {
	if level > mostLevels {
		return fmt.Errorf("descriptors stand more than %d deep in each other", mostLevels)
	}
	if p.descriptors++; p.descriptors > mostDescriptors {
		return fmt.Errorf("there are more than %d descriptors", mostDescriptors)
	}
	*to = append(*to, yamlDescriptor{})
	d := &(*to)[len(*to)-1]
	return message.Each(data, func(f message.Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			return f.Text(&d.Key)
		case f.Is(2, protowire.BytesType):
			return f.Text(&d.Value)
		case f.Is(3, protowire.BytesType):
			if d.RateLimit == nil {
				d.RateLimit = &yamlLimit{Unit: message.Unknown.String()}
			}
			return d.RateLimit.read(f.Bytes)
		case f.Is(4, protowire.BytesType):
			return p.descriptor(&d.Descriptors, f.Bytes, level+1)
		case f.Is(5, protowire.VarintType):
			d.ShadowMode = f.N != 0
		case f.Is(6, protowire.VarintType):
			d.DetailedMetric = f.N != 0
		case f.Is(7, protowire.VarintType):
			d.QuotaMode = f.N != 0
		case f.Is(8, protowire.BytesType):
			if d.Metadata == nil {
				d.Metadata = map[string]any{}
			}
			return message.ReadStruct(d.Metadata, f.Bytes)
		}
		return nil
	})
}

// read reads a RateLimitPolicy.
func (l *yamlLimit) read(data []byte) error {
	return message.Each(data, func(f message.Field) error {
		switch {
		case f.Is(1, protowire.VarintType):
			l.Unit = message.Unit(f.N).String()
		case f.Is(2, protowire.VarintType):
			n := uint32(f.N)
			l.RequestsPerUnit = &n
		case f.Is(3, protowire.VarintType):
			l.Unlimited = f.N != 0
		case f.Is(4, protowire.BytesType):
			return f.Text(&l.Name)
		case f.Is(5, protowire.BytesType):
			l.Replaces = append(l.Replaces, struct{ Name string }{})
			return message.Each(f.Bytes, func(f message.Field) error {
				if f.Is(1, protowire.BytesType) {
					return f.Text(&l.Replaces[len(l.Replaces)-1].Name)
				}
				return nil
			})
		}
		return nil
	})
}
