package message

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Errors of Unmarshal.
var (
	errCut  = errors.New("the message is cut off or damaged")
	errUTF8 = errors.New("a text is not UTF-8")
	errMany = fmt.Errorf("there are more than %d descriptors, or more than %d entries in them", mostDescriptors, mostEntries)
)

// Field is a field of a message: a number, or bytes. Of other kinds it has only the number of the field.
type Field struct {
	protowire.Number
	kind  protowire.Type
	N     uint64
	Bytes []byte
}

// Each calls read for the fields of a message.
func Each(b []byte, read func(Field) error) error {
	for len(b) > 0 {
		var f Field
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errCut
		}
		b = b[n:]
		switch f.Number, f.kind = number, kind; kind {
		case protowire.VarintType:
			f.N, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			f.N, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errCut
		}
		b = b[n:]
		if err := read(f); err != nil {
			return err
		}
	}
	return nil
}

// Is reports a field of this number and kind. Another kind than the message's is a field that nobody knows.
func (f *Field) Is(number protowire.Number, kind protowire.Type) bool {
	return f.Number == number && f.kind == kind
}

// Text reads a text.
func (f *Field) Text(into *string) error {
	if !utf8.Valid(f.Bytes) {
		return errUTF8
	}
	*into = string(f.Bytes)
	return nil
}

// Unmarshal reads a RateLimitRequest. It does not keep data. Fields that it does not know are left out.
func Unmarshal(data []byte) (q *Request, err error) {
	q = &Request{}
	entries := 0
	err = Each(data, func(f Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			return f.Text(&q.Domain)
		case f.Is(2, protowire.BytesType):
			if len(q.Descriptors) == mostDescriptors {
				return errMany
			}
			q.Descriptors = append(q.Descriptors, Descriptor{})
			return q.Descriptors[len(q.Descriptors)-1].read(f.Bytes, &entries)
		case f.Is(3, protowire.VarintType):
			q.Hits = uint32(f.N)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a RateLimitRequest: %w", err)
	}
	return q, nil
}

// read reads a descriptor. entries are those of the request so far.
func (d *Descriptor) read(b []byte, entries *int) error {
	return Each(b, func(f Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			if *entries++; *entries > mostEntries {
				return errMany
			}
			d.Entries = append(d.Entries, Entry{})
			return d.Entries[len(d.Entries)-1].read(f.Bytes)
		case f.Is(2, protowire.BytesType):
			if d.Limit == nil {
				d.Limit = &Limit{}
			}
			return d.Limit.read(f.Bytes)
		case f.Is(3, protowire.BytesType): // a google.protobuf.UInt64Value
			if d.Hits == nil {
				d.Hits = new(uint64)
			}
			return Each(f.Bytes, func(f Field) error {
				if f.Is(1, protowire.VarintType) {
					*d.Hits = f.N
				}
				return nil
			})
		case f.Is(4, protowire.VarintType):
			d.Negative = f.N != 0
		}
		return nil
	})
}

func (e *Entry) read(b []byte) error {
	return Each(b, func(f Field) error {
		switch {
		case f.Is(1, protowire.BytesType):
			return f.Text(&e.Key)
		case f.Is(2, protowire.BytesType):
			return f.Text(&e.Value)
		}
		return nil
	})
}

func (l *Limit) read(b []byte) error {
	return Each(b, func(f Field) error {
		switch {
		case f.Is(1, protowire.VarintType):
			l.Requests = uint32(f.N)
		case f.Is(2, protowire.VarintType):
			l.Unit = Unit(f.N)
		}
		return nil
	})
}

// Marshal appends a RateLimitResponse. As in all of protobuf, a field of 0 or "" is left out.
func (r *Response) Marshal(b []byte) ([]byte, error) {
	b = appendVarint(b, 1, uint64(r.Code))
	var room [128]byte
	for i := range r.Statuses {
		b = appendBytes(b, 2, r.Statuses[i].append(room[:0]))
	}
	for _, h := range r.Headers {
		b = appendBytes(b, 3, appendText(appendText(room[:0], 1, h.Name), 2, h.Value))
	}
	if r.Metadata == nil {
		return b, nil
	}
	inner, err := AppendStruct(nil, r.Metadata)
	return appendBytes(b, 6, inner), err
}

func (s *Status) append(b []byte) []byte {
	b = appendVarint(b, 1, uint64(s.Code))
	if l := s.Limit; l != nil {
		var room [64]byte
		b = appendBytes(b, 2, appendText(appendVarint(appendVarint(room[:0], 1, uint64(l.Requests)), 2, uint64(l.Unit)), 3, l.Name))
	}
	b = appendVarint(b, 3, uint64(s.Remaining))
	if s.Limit != nil {
		var room [16]byte
		b = appendBytes(b, 4, appendVarint(room[:0], 1, uint64(s.Reset))) // a google.protobuf.Duration
	}
	return b
}

func appendVarint(b []byte, number protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

func appendBytes(b []byte, number protowire.Number, inner []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), inner)
}
