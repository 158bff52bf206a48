package message

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestUnmarshalDiscovery(t *testing.T) {
	resource, err := proto.Marshal(&anypb.Any{TypeUrl: "example.com/a/b.C", Value: []byte("\x01\x02")})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		data []byte
		want *Discovery
	}{
		{nil, &Discovery{}},
		{wire(1, "v", 2, resource, 2, "", 3, 1, 4, "a/B", 5, "n", 6, wire(1, "xds")),
			&Discovery{Version: "v", Nonce: "n", Resources: []Resource{{"b.C", []byte("\x01\x02")}, {}}}},
		{wire(2, wire(1, "b.C")), &Discovery{Resources: []Resource{{Type: "b.C"}}}},
	} {
		if got, err := UnmarshalDiscovery(of.data); err != nil || !reflect.DeepEqual(got, of.want) {
			t.Errorf("%x: %+v %v, want %+v", of.data, got, err, of.want)
		}
	}
	for _, data := range [][]byte{{0xff}, wire(1, "\xff"), wire(2, wire(1, "\xff")), wire(5, "\xff")} {
		if got, err := UnmarshalDiscovery(data); err == nil || got != nil || !strings.HasPrefix(err.Error(), "read a DiscoveryResponse: ") {
			t.Errorf("%x: %+v %v", data, got, err)
		}
	}
}

func TestSubscription(t *testing.T) {
	one, err := (&Subscription{TypeURL: "t"}).Marshal()
	if want := wire(2, "", 4, "t"); err != nil || string(one) != string(want) {
		t.Errorf("%x %v, want %x", one, err, want)
	}
	fields, err := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue("b")}})
	if err != nil {
		t.Fatal(err)
	}
	whole := Subscription{Node: "n", Metadata: map[string]any{"a": "b"}, TypeURL: "t", Version: "v", Nonce: "o", Refusal: "r"}
	all, err := whole.Marshal()
	if want := wire(1, "v", 2, wire(1, "n", 3, fields), 4, "t", 5, "o", 6, wire(2, "r")); err != nil || string(all) != string(want) {
		t.Errorf("%x %v, want %x", all, err, want)
	}
	if _, err := (&Subscription{Metadata: map[string]any{"a": "\xff"}}).Marshal(); err == nil {
		t.Error("it is no UTF-8")
	}
}

// A Struct is read as protobuf's own library reads it.
func TestReadStruct(t *testing.T) {
	fields := map[string]any{"null": nil, "n": 1.5, "text": "é", "yes": true, "list": []any{"a", nil, []any{}},
		"in": map[string]any{"b": false}}
	data, err := AppendStruct(nil, fields)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := ReadStruct(got, data); err != nil || !reflect.DeepEqual(got, fields) {
		t.Errorf("%v %v, want %v", got, err, fields)
	}
	deep := any("x")
	for range 60 { // each stands in a Value, which is a message, too
		deep = map[string]any{"a": deep}
	}
	if data, err = AppendStruct(nil, map[string]any{"a": deep}); err != nil {
		t.Fatal(err)
	}
	if err := ReadStruct(map[string]any{}, data); err != errDepth {
		t.Errorf("%v", err)
	}
}

func FuzzReadStruct(f *testing.F) {
	f.Add([]byte("\x0a\x05\x0a\x01a\x12\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, m := map[string]any{}, &structpb.Struct{}
		err := ReadStruct(got, data)
		merges := strings.Count(string(data), "\x2a") > 1 || strings.Count(string(data), "\x32") > 1
		if proto.Unmarshal(data, m) != nil || err == errDepth || merges {
			return // the library merges two values of one field, and looks into what nobody knows
		}
		if want := m.AsMap(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) && !strings.Contains(fmt.Sprint(got), "NaN") {
			t.Errorf("%x: %v %v, want %v", data, got, err, want)
		}
	})
}
