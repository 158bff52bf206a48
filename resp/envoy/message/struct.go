package message

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// AppendStruct appends a google.protobuf.Struct, in the order of its names. Its values are those that YAML and JSON have. It is written by
// hand as the package for it comes with all of protobuf's reflection, which is 1.7 MB of the binary, and 0.1 MB of memory at rest:
// https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/struct.proto
func AppendStruct(b []byte, fields map[string]any) (_ []byte, err error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("invalid UTF-8 in string: %q", name)
		}
		value, err := appendValue(nil, fields[name])
		if err != nil {
			return nil, err
		}
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		b = appendBytes(b, 1, appendBytes(entry, 2, value))
	}
	return b, nil
}

// appendValue appends a google.protobuf.Value. Its kind is known by the field, so none is left out.
func appendValue(b []byte, value any) ([]byte, error) {
	number := func(n float64) ([]byte, error) {
		return protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(n)), nil
	}
	switch v := value.(type) {
	case nil:
		return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 0), nil
	case int:
		return number(float64(v))
	case int64:
		return number(float64(v))
	case uint64:
		return number(float64(v))
	case float64:
		return number(v)
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("invalid UTF-8 in string: %q", v)
		}
		return protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), v), nil
	case bool:
		return protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), protowire.EncodeBool(v)), nil
	case map[string]any:
		inner, err := AppendStruct(nil, v)
		return appendBytes(b, 5, inner), err
	case []any:
		var list []byte
		for _, item := range v {
			inner, err := appendValue(nil, item)
			if err != nil {
				return nil, err
			}
			list = appendBytes(list, 1, inner)
		}
		return appendBytes(b, 6, list), nil
	}
	return nil, fmt.Errorf("a %T is no value of JSON", value)
}

// mostDepth is how deep messages may stand in each other. Configurations in use have less than ten levels.
const mostDepth = 100

var errDepth = fmt.Errorf("messages stand more than %d deep in each other", mostDepth)

// ReadStruct reads a google.protobuf.Struct. Its numbers are float64.
func ReadStruct(into map[string]any, data []byte) error { return readStruct(into, data, 0) }

func readStruct(into map[string]any, data []byte, depth int) error {
	if depth > mostDepth {
		return errDepth
	}
	return Each(data, func(f Field) error {
		if !f.Is(1, protowire.BytesType) {
			return nil
		}
		name, value := "", any(nil)
		err := Each(f.Bytes, func(f Field) (err error) {
			switch {
			case f.Is(1, protowire.BytesType):
				err = f.Text(&name)
			case f.Is(2, protowire.BytesType):
				value, err = readValue(f.Bytes, depth+1)
			}
			return err
		})
		into[name] = value
		return err
	})
}

// readValue reads a google.protobuf.Value. The last of its fields counts.
func readValue(data []byte, depth int) (value any, err error) {
	err = Each(data, func(f Field) (err error) {
		switch {
		case f.Is(1, protowire.VarintType):
			value = nil
		case f.Is(2, protowire.Fixed64Type):
			value = math.Float64frombits(f.N)
		case f.Is(3, protowire.BytesType):
			text := ""
			err = f.Text(&text)
			value = text
		case f.Is(4, protowire.VarintType):
			value = f.N != 0
		case f.Is(5, protowire.BytesType):
			inner := map[string]any{}
			err = readStruct(inner, f.Bytes, depth+1)
			value = inner
		case f.Is(6, protowire.BytesType):
			list := []any{}
			err = Each(f.Bytes, func(f Field) error {
				if !f.Is(1, protowire.BytesType) {
					return nil
				}
				item, err := readValue(f.Bytes, depth+1)
				list = append(list, item)
				return err
			})
			value = list
		}
		return err
	})
	return value, err
}
