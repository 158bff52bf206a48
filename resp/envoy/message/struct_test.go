package message

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

// TestStruct compares with what protobuf's own package writes.
func TestStruct(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "é", strings.Repeat("long", 99)})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int().AsAny(), rapid.Int64().AsAny(), rapid.Uint64().AsAny(),
			rapid.Float64().AsAny(), rapid.Just[any](math.Inf(-1)), text.AsAny(),
		}
		if depth > 0 {
			inner := value(depth - 1)
			kinds = append(kinds, rapid.SliceOfN(inner, 0, 3).AsAny(), rapid.MapOfN(text, inner, 0, 3).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOfN(text, value(3), 0, 3).Draw(t, "fields")
		theirs, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendStruct([]byte("before"), fields)
		if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Fatalf("%v: got %q, %v; want %q", fields, got, err, want)
		}
	})
	for _, of := range []struct {
		value any
		want  string
	}{
		{"\xff", `invalid UTF-8 in string: "\xff"`}, {[]any{map[string]any{"\xfe": 1}}, `invalid UTF-8 in string: "\xfe"`},
		{t.Name, "a func() string is no value of JSON"},
	} {
		if got, err := AppendStruct(nil, map[string]any{"a": of.value}); err == nil || err.Error() != of.want || got != nil {
			t.Errorf("got %q, %v; want %s", got, err, of.want)
		}
	}
}
