package message

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// wire writes fields as protobuf does: an int as a number, and a string or bytes with their length.
func wire(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		number := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		case uint64:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
		}
	}
	return b
}

func hits(n uint64) *uint64 { return &n }

func TestUnmarshal(t *testing.T) {
	wrapped := func(n uint64) []byte {
		b, err := proto.Marshal(wrapperspb.UInt64(n))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	descriptor := func(d Descriptor) *Request { return &Request{Descriptors: []Descriptor{d}} }
	for _, of := range []struct {
		name string
		data []byte
		want *Request
	}{
		{"nothing", nil, &Request{}},
		{"a usual request", wire(1, "shop", 2, wire(1, wire(1, "user", 2, "ann"), 1, wire(1, "path", 2, "/")), 3, 4),
			&Request{Domain: "shop", Hits: 4, Descriptors: []Descriptor{{Entries: []Entry{{"user", "ann"}, {"path", "/"}}}}}},
		{"empty messages count", wire(2, "", 2, wire(1, "")), &Request{Descriptors: []Descriptor{{}, {Entries: []Entry{{}}}}}},
		{"a limit", wire(2, wire(2, wire(1, 7, 2, 3))), descriptor(Descriptor{Limit: &Limit{Requests: 7, Unit: Hour}})},
		{"an empty limit", wire(2, wire(2, "")), descriptor(Descriptor{Limit: &Limit{}})},
		{"no hits", wire(2, wire(3, wrapped(0))), descriptor(Descriptor{Hits: hits(0)})},
		{"hits", wire(2, wire(3, wrapped(1<<64-1))), descriptor(Descriptor{Hits: hits(1<<64 - 1)})},
		{"negative hits", wire(2, wire(3, wrapped(2), 4, 1)), descriptor(Descriptor{Hits: hits(2), Negative: true})},
		{"any number but 0 is true", wire(2, wire(4, uint64(1<<63))), descriptor(Descriptor{Negative: true})},

		// What protobuf says of fields that come again: the last number and text hold, and messages are joined.
		{"twice", wire(1, "a", 3, 1, 1, "b", 3, 2), &Request{Domain: "b", Hits: 2}},
		{"joined", wire(2, wire(2, wire(1, 7), 3, wrapped(5), 2, wire(2, 3), 3, "")),
			descriptor(Descriptor{Limit: &Limit{Requests: 7, Unit: Hour}, Hits: hits(5)})},

		// Numbers lose what is above their width, as in all of protobuf.
		{"wide", wire(3, uint64(1<<40|9)), &Request{Hits: 9}},
		{"a wide unit", wire(2, wire(2, wire(2, uint64(1<<40|2)))), descriptor(Descriptor{Limit: &Limit{Unit: Minute}})},
		{"a negative unit", wire(2, wire(2, wire(2, uint64(1<<64-1)))), descriptor(Descriptor{Limit: &Limit{Unit: -1}})},

		// A newer Envoy may send fields that are not known here.
		{"unknown fields", wire(1, "a", 99, "x", 77, 5), &Request{Domain: "a"}},
		{"of another kind", wire(1, 5, 3, "x"), &Request{}},
		{"fixed", protowire.AppendFixed64(protowire.AppendTag(wire(1, "a"), 3, protowire.Fixed64Type), 1), &Request{Domain: "a"}},
		{"a group", protowire.AppendTag(wire(1, "b", 9, 1)[:3:3], 9, protowire.StartGroupType), nil},
	} {
		got, err := Unmarshal(of.data)
		if of.want == nil {
			if err == nil {
				t.Errorf("%s: got %+v, want an error", of.name, got)
			}
		} else if err != nil || !reflect.DeepEqual(got, of.want) {
			t.Errorf("%s: got %+v, %v, want %+v", of.name, got, err, of.want)
		}
	}
}

func TestUnmarshalErrors(t *testing.T) {
	cut, utf8 := "read a RateLimitRequest: the message is cut off or damaged", "read a RateLimitRequest: a text is not UTF-8"
	for data, want := range map[string]string{
		"\x0a":       cut,
		"\x0a\x05ab": cut,
		"\x80":       cut,
		"\x00":       cut, // there is no field 0
		"\x0e":       cut, // nor a kind 6
		"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": cut, // a number of more than 64 bits
		"\x0c":                  cut, // the end of a group that has not begun
		"\x12\x02\x0a\x05":      cut,
		"\x12\x03\x1a\x01\x08":  cut, // of a descriptor's hits
		"\x12\x03\x12\x01\x08":  cut, // of its limit
		string(wire(1, "\xff")): utf8,
		string(wire(2, wire(1, wire(1, "\xc3\x28")))):     utf8,
		string(wire(2, wire(1, wire(2, "\xed\xa0\x80")))): utf8, // half of a pair of UTF-16
	} {
		if q, err := Unmarshal([]byte(data)); err == nil || err.Error() != want {
			t.Errorf("%q: got %+v, %v, want %s", data, q, err, want)
		}
	}
}

// TestMostOfARequest: a message of 64 KB could have 32,000 entries, which would take a hundred times its memory.
func TestMostOfARequest(t *testing.T) {
	for _, of := range []struct {
		descriptors, entries int // of each
		ok                   bool
	}{{1000, 5, true}, {1001, 0, false}, {1, 5000, true}, {1, 5001, false}, {501, 10, false}, {32_000, 0, false}} {
		d := Descriptor{Entries: slices.Repeat([]Entry{{}}, of.entries)}
		q := &Request{Descriptors: slices.Repeat([]Descriptor{d}, of.descriptors)}
		_, err := Unmarshal(encode(q))
		inJSON := `{"descriptors":[` + strings.TrimSuffix(strings.Repeat(`{"entries":[`+
			strings.TrimSuffix(strings.Repeat("{},", of.entries), ",")+`]},`, of.descriptors), ",") + `]}`
		_, errJSON := UnmarshalJSON([]byte(inJSON))
		if (err == nil) != of.ok || (errJSON == nil) != of.ok || !of.ok && (!errors.Is(err, errMany) || !errors.Is(errJSON, errMany)) {
			t.Errorf("%+v: %v, JSON: %v", of, err, errJSON)
		}
	}
}

func TestUnmarshalKeepsNothing(t *testing.T) {
	data := wire(1, "shop", 2, wire(1, wire(1, "user", 2, "ann")))
	q, err := Unmarshal(data)
	clear(data)
	if err != nil || q.Domain != "shop" || q.Descriptors[0].Entries[0] != (Entry{"user", "ann"}) {
		t.Errorf("got %+v, %v", q, err)
	}
}

func TestMarshal(t *testing.T) {
	metadata := map[string]any{"b": 1.5, "a": []any{true, nil, "x"}, "c": map[string]any{}}
	plain, err := structpb.NewStruct(metadata)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := proto.MarshalOptions{Deterministic: true}.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	duration, err := proto.Marshal(durationpb.New(30e9))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 300)
	for _, of := range []struct {
		answer Response
		want   []byte
	}{
		{Response{Code: OK}, wire(1, 1)},
		{Response{Code: Over, Statuses: []Status{{Code: OK}}}, wire(1, 2, 2, wire(1, 1))},
		{Response{Code: OK, Statuses: []Status{
			{Code: Over, Limit: &Limit{Requests: 5, Unit: Week, Name: long}, Reset: 30},
			{Code: OK, Limit: &Limit{}, Remaining: 1<<32 - 1},
		}}, wire(1, 1, 2, wire(1, 2, 2, wire(1, 5, 2, 7, 3, long), 4, duration), 2, wire(1, 1, 2, "", 3, 1<<32-1, 4, ""))},
		{Response{Code: OK, Headers: []Header{{"a", "1"}, {long, ""}}}, wire(1, 1, 3, wire(1, "a", 2, "1"), 3, wire(1, long))},
		{Response{Code: OK, Metadata: metadata}, wire(1, 1, 6, inner)},
		{Response{Code: OK, Metadata: map[string]any{}}, wire(1, 1, 6, "")},
	} {
		got, err := of.answer.Marshal([]byte("before"))
		if err != nil || string(got) != "before"+string(of.want) {
			t.Errorf("%+v: got %q, %v, want %q", of.answer, got, err, of.want)
		}
	}
	bad := Response{Code: OK, Metadata: map[string]any{"a": "\xff"}}
	if got, err := bad.Marshal(nil); err == nil {
		t.Errorf("metadata that is not UTF-8 is %q", got)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(wire(1, "shop", 2, wire(1, wire(1, "user", 2, "ann"), 2, wire(1, 7, 2, 3), 3, wire(1, 5), 4, 1), 3, 4))
	f.Add(protowire.AppendTag(nil, 9, protowire.StartGroupType))
	f.Add([]byte("\x12\x02\x0a\x05"))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := Unmarshal(data)
		if err != nil {
			return
		}
		checkRead(t, q, len(data))
		if again, err := Unmarshal(encode(q)); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%q: read %+v, and again %+v, %v", data, q, again, err)
		}
	})
}

// checkRead fails where a request cannot be that of so many bytes.
func checkRead(t *testing.T, q *Request, length int) {
	t.Helper()
	size, texts := 2*len(q.Descriptors), []string{q.Domain}
	for _, d := range q.Descriptors {
		size += 2 * len(d.Entries)
		for _, e := range d.Entries {
			texts = append(texts, e.Key, e.Value)
		}
	}
	for _, text := range texts {
		if size += len(text); !utf8.ValidString(text) {
			t.Errorf("%q is not UTF-8", text)
		}
	}
	if size > length {
		t.Errorf("%d bytes are read from %d: %+v", size, length, q)
	}
}

// encode writes a request in protobuf.
func encode(q *Request) []byte {
	b := wire(1, q.Domain, 3, uint64(q.Hits))
	for _, d := range q.Descriptors {
		var inner []byte
		for _, e := range d.Entries {
			inner = append(inner, wire(1, wire(1, e.Key, 2, e.Value))...)
		}
		if l := d.Limit; l != nil {
			inner = append(inner, wire(2, wire(1, uint64(l.Requests), 2, uint64(l.Unit)))...)
		}
		if d.Hits != nil {
			inner = append(inner, wire(3, wire(1, *d.Hits))...)
		}
		if d.Negative {
			inner = append(inner, wire(4, 1)...)
		}
		b = append(b, wire(2, inner)...)
	}
	return b
}
