package message

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestUnmarshalJSON(t *testing.T) {
	descriptor := func(d Descriptor) *Request { return &Request{Descriptors: []Descriptor{d}} }
	limit := func(l Limit) *Request { return descriptor(Descriptor{Limit: &l}) }
	for text, want := range map[string]*Request{
		`{}`: {},
		` {"domain":"shop","descriptors":[{"entries":[{"key":"a","value":"é\n"},{"value":"x"}]}],"hitsAddend":3}`: {
			Domain: "shop", Hits: 3, Descriptors: []Descriptor{{Entries: []Entry{{"a", "é\n"}, {"", "x"}}}}},
		`{"hits_addend":4294967295}`: {Hits: 1<<32 - 1},
		`{"hitsAddend":"3"}`:         {Hits: 3},
		`{"hitsAddend":3.0}`:         {Hits: 3},
		`{"hitsAddend":30e-1}`:       {Hits: 3},
		`{"hitsAddend":-0}`:          {},

		`{"domain":null,"descriptors":null,"hitsAddend":null}`:                                    {},
		`{"descriptors":[{"entries":null,"limit":null,"hitsAddend":null,"isNegativeHits":null}]}`: descriptor(Descriptor{}),
		`{"descriptors":[{"entries":[{"key":null,"value":null}]}]}`:                               descriptor(Descriptor{Entries: []Entry{{}}}),

		`{"descriptors":[{"hitsAddend":"18446744073709551615"}]}`: descriptor(Descriptor{Hits: hits(1<<64 - 1)}),
		`{"descriptors":[{"hitsAddend":18446744073709551615}]}`:   descriptor(Descriptor{Hits: hits(1<<64 - 1)}),
		`{"descriptors":[{"hits_addend":0}]}`:                     descriptor(Descriptor{Hits: hits(0)}),
		`{"descriptors":[{"is_negative_hits":true}]}`:             descriptor(Descriptor{Negative: true}),
		`{"descriptors":[{"isNegativeHits":false}]}`:              descriptor(Descriptor{}),

		`{"descriptors":[{"limit":{}}]}`:                                   limit(Limit{}),
		`{"descriptors":[{"limit":{"requestsPerUnit":7,"unit":"HOUR"}}]}`:  limit(Limit{Requests: 7, Unit: Hour}),
		`{"descriptors":[{"limit":{"requests_per_unit":"7","unit":7}}]}`:   limit(Limit{Requests: 7, Unit: Week}),
		`{"descriptors":[{"limit":{"unit":"WEEK"}}]}`:                      limit(Limit{Unit: Week}),
		`{"descriptors":[{"limit":{"unit":99}}]}`:                          limit(Limit{Unit: 99}),
		`{"descriptors":[{"limit":{"unit":-1}}]}`:                          limit(Limit{Unit: -1}),
		`{"descriptors":[{"limit":{"unit":null,"requestsPerUnit":null}}]}`: limit(Limit{}),
	} {
		if q, err := UnmarshalJSON([]byte(text)); err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, q, err, want)
		}
	}
}

func TestUnmarshalJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "not JSON, at byte 0",
		`{`:                                "not JSON, at byte 1",
		`{"domain":"a"} x`:                 "not JSON, at byte 15",
		`[]`:                               "the body: expected an object",
		`"a"`:                              "the body: expected an object",
		`{"domain":1}`:                     "domain: expected a string",
		`{"domain":"a","domain":"b"}`:      "domain: the field is given twice",
		`{"hitsAddend":1,"hits_addend":2}`: "hits_addend: the field is given twice",
		`{"domains":"a"}`:                  "domains: an unknown field",
		`{"descriptors":[{"limit":{"name":"a"}}]}`:              "descriptors[0].limit.name: an unknown field",
		"{\"domain\":\"\xff\"}":                                 "not JSON, at byte 11",
		`{"domain":"\ud800"}`:                                   "not JSON, at byte 11",
		`{"hitsAddend":-1}`:                                     "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":1.5}`:                                    "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":"NaN"}`:                                  "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":""}`:                                     "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":true}`:                                   "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":[1]}`:                                    "hitsAddend: expected an integer of 0 or more",
		`{"hitsAddend":4294967296}`:                             "hitsAddend: expected 4294967295 at most",
		`{"descriptors":{}}`:                                    "descriptors: expected a list",
		`{"descriptors":[{"hitsAddend":18446744073709551616}]}`: "descriptors[0].hitsAddend: expected an integer of 0 or more",
		`{"descriptors":[{},{"limit":{"requestsPerUnit":4294967296}}]}`: "descriptors[1].limit.requestsPerUnit: expected 4294967295 at most",
		`{"descriptors":[{"limit":{"unit":"minute"}}]}`:                 "descriptors[0].limit.unit: expected a unit, such as MINUTE",
		`{"descriptors":[{"limit":{"unit":2147483648}}]}`:               "descriptors[0].limit.unit: expected a unit, such as MINUTE",
		`{"descriptors":[{"limit":{"unit":{}}}]}`:                       "descriptors[0].limit.unit: expected a unit, such as MINUTE",
		`{"descriptors":[{"isNegativeHits":1}]}`:                        "descriptors[0].isNegativeHits: expected true or false",
		`{"` + strings.Repeat("x", 300) + `":1}`:                        strings.Repeat("x", 200) + ": an unknown field",
		"{\"a\\n\":1}":                                                  `a\n: an unknown field`, // a line remains one
		strings.Repeat("[", 20_000):                                     "the body: expected an object",
		`{"descriptors":` + strings.Repeat("[", 20_000):                 "descriptors[0]: expected an object",
	} {
		if q, err := UnmarshalJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.80s: got %+v, %v, want %s", text, q, err, want)
		}
	}
}

func TestMarshalJSON(t *testing.T) {
	for _, of := range []struct {
		answer Response
		want   string
	}{
		{Response{Code: OK}, `{"overallCode":"OK"}`},
		{Response{Code: Over, Statuses: []Status{
			{Code: OK},
			{Code: Over, Limit: &Limit{Requests: 5, Unit: Minute, Name: "a\"<b>"}, Reset: 30},
			{Code: OK, Limit: &Limit{}, Remaining: 1<<32 - 1},
		}}, `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OK"},` +
			`{"code":"OVER_LIMIT","currentLimit":{"requestsPerUnit":5,"unit":"MINUTE","name":"a\"<b>"},"durationUntilReset":"30s"},` +
			`{"code":"OK","currentLimit":{},"limitRemaining":4294967295,"durationUntilReset":"0s"}]}`},
		{Response{Code: OK, Headers: []Header{{"a", "1"}, {"b", ""}}},
			`{"overallCode":"OK","responseHeadersToAdd":[{"key":"a","value":"1"},{"key":"b"}]}`},
		{Response{Code: OK, Metadata: map[string]any{"b": 1.5, "a": []any{true, nil, 7, "x"}}},
			`{"overallCode":"OK","dynamicMetadata":{"a":[true,null,7,"x"],"b":1.5}}`},
	} {
		if got, err := of.answer.MarshalJSON(); err != nil || string(got) != of.want {
			t.Errorf("%+v: got %s, %v, want %s", of.answer, got, err, of.want)
		}
	}
}

// TestMetadataInJSONAndProtobuf compares values that YAML can have: both ways, Envoy's users must see the same.
func TestMetadataInJSONAndProtobuf(t *testing.T) {
	for _, value := range []any{nil, true, "", "x", "\u2028<é", 0, -1, 1 << 60, uint64(1<<64 - 1), 1.5, 1e300, -1e-7, []any{},
		[]any{1, []any{"a"}}, map[string]any{"": map[string]any{"a": nil}}} {
		answer := Response{Code: OK, Metadata: map[string]any{"v": value}}
		inJSON, err := answer.MarshalJSON()
		if err != nil {
			t.Errorf("%v: %v", value, err)
			continue
		}
		wire, err := AppendStruct(nil, answer.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		var metadata structpb.Struct
		if err := proto.Unmarshal(wire, &metadata); err != nil {
			t.Fatal(err)
		}
		inProtobuf, err := protojson.Marshal(&metadata)
		if err != nil {
			t.Fatal(err)
		}
		var a struct{ DynamicMetadata any }
		var b any
		if err := json.Unmarshal(inJSON, &a, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(inProtobuf, &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a.DynamicMetadata, b) {
			t.Errorf("%v: JSON %s, protobuf %s", value, inJSON, inProtobuf)
		}
	}
}

func FuzzUnmarshalJSON(f *testing.F) {
	f.Add([]byte(`{"domain":"shop","descriptors":[{"entries":[{"key":"a","value":"é"}],"limit":{"requestsPerUnit":7,"unit":"HOUR"},` +
		`"hitsAddend":"5","isNegativeHits":true}],"hitsAddend":3}`))
	f.Add([]byte(`{"hits_addend":3e0,"descriptors":[{"limit":{"unit":-1}}]}`))
	f.Add([]byte(`{"domain":"\ud83d\ude00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := UnmarshalJSON(data)
		if err != nil {
			if text := err.Error(); strings.ContainsAny(text, "\r\n") || len(text) > 1000 {
				t.Errorf("%q: the error is %q", data, text)
			}
			return
		}
		checkRead(t, q, len(data))
		inProtobuf, err := Unmarshal(encode(q))
		if err != nil || !reflect.DeepEqual(inProtobuf, q) {
			t.Errorf("%q: JSON %+v, protobuf %+v, %v", data, q, inProtobuf, err)
		}
	})
}

func TestUnits(t *testing.T) {
	for u := Unknown; u <= Week; u++ {
		for _, name := range []string{u.String(), strings.ToLower(u.String())} {
			if got := UnitNamed(name); got != u {
				t.Errorf("the unit %s is %v", name, got)
			}
		}
		if got := UnitLasting(u.Period()); got != u {
			t.Errorf("the unit of %v is %v, want %v", u.Period(), got, u)
		}
	}
	for _, u := range []Unit{-1, 8, 1<<31 - 1, -1 << 31} {
		if u.Period() != 0 || u.String() != fmt.Sprint(int32(u)) {
			t.Errorf("the unit %d is %s, and lasts %v", int32(u), u, u.Period())
		}
	}
	for _, name := range []string{"", "min", "MINUTES", "minute ", "wee\u212a"} {
		if got := UnitNamed(name); got != Unknown {
			t.Errorf("the unit %q is %v", name, got)
		}
	}
}
