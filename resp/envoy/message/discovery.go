package message

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Discovery is a DiscoveryResponse of xDS, as the state of the world: all that the server has of one type. Its type and its control plane
// are not read: https://www.envoyproxy.io/docs/envoy/v1.37.0/api-v3/service/discovery/v3/discovery.proto.
type Discovery struct {
	Version, Nonce string
	Resources      []Resource
}

// Resource is a google.protobuf.Any.
type Resource struct {
	Type  string // the name of the message: what stands behind the last / of its URL
	Value []byte
}

// UnmarshalDiscovery reads a DiscoveryResponse. It keeps data.
func UnmarshalDiscovery(data []byte) (d *Discovery, err error) {
	d = &Discovery{}
	err = Each(data, func(f Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			return f.Text(&d.Version)
		case f.Is(2, protowire.BytesType):
			r, err := readAny(f.Bytes)
			d.Resources = append(d.Resources, r)
			return err
		case f.Is(5, protowire.BytesType):
			return f.Text(&d.Nonce)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a DiscoveryResponse: %w", err)
	}
	return d, nil
}

func readAny(data []byte) (r Resource, err error) {
	err = Each(data, func(f Field) (err error) {
		switch {
		case f.Is(1, protowire.BytesType):
			if err = f.Text(&r.Type); err == nil {
				r.Type = r.Type[strings.LastIndexByte(r.Type, '/')+1:]
			}
		case f.Is(2, protowire.BytesType):
			r.Value = f.Bytes
		}
		return err
	})
	return r, err
}

// Subscription is a DiscoveryRequest: it asks for all resources of a type, and takes or refuses what came last.
type Subscription struct {
	Node     string
	Metadata map[string]any // of the node
	TypeURL  string
	Version  string // that is in force; "": none
	Nonce    string // of the response that is taken or refused; "": of none
	Refusal  string // why it is refused; "": it is taken
}

// Marshal returns the message.
func (s *Subscription) Marshal() ([]byte, error) {
	node := appendText(nil, 1, s.Node)
	if len(s.Metadata) > 0 {
		fields, err := AppendStruct(nil, s.Metadata)
		if err != nil {
			return nil, err
		}
		node = appendBytes(node, 3, fields)
	}
	b := appendBytes(appendText(nil, 1, s.Version), 2, node)
	b = appendText(appendText(b, 4, s.TypeURL), 5, s.Nonce)
	if s.Refusal != "" {
		b = appendBytes(b, 6, appendText(nil, 2, s.Refusal))
	}
	return b, nil
}
