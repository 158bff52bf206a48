package domains

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"celld/resp/envoy/message"
)

// unitNames are those of RateLimitUnit, by their numbers.
var unitNames = strings.Fields("UNKNOWN SECOND MINUTE HOUR DAY MONTH YEAR WEEK")

// configType is RateLimitConfig, for protobuf's own library. Each line is a message with its fields, in the order of their numbers; [] is
// many. The package of the generated code is part of a module that has no version with all fields.
var configType = func() protoreflect.MessageDescriptor {
	const messages = `RateLimitConfig name:string domain:string descriptors:[]RateLimitDescriptor
RateLimitDescriptor key:string value:string rate_limit:RateLimitPolicy descriptors:[]RateLimitDescriptor shadow_mode:bool detailed_metric:bool quota_mode:bool metadata:google.protobuf.Struct
RateLimitPolicy unit:RateLimitUnit requests_per_unit:uint32 unlimited:bool name:string replaces:[]RateLimitReplace
RateLimitReplace name:string`
	const pkg = "ratelimit.config.ratelimit.v3"
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("rls_conf.proto"), Package: proto.String(pkg),
		Syntax: proto.String("proto3"), Dependency: []string{structpb.File_google_protobuf_struct_proto.Path()}}
	unit := &descriptorpb.EnumDescriptorProto{Name: proto.String("RateLimitUnit")}
	for i, name := range unitNames {
		unit.Value = append(unit.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(name), Number: proto.Int32(int32(i))})
	}
	file.EnumType = append(file.EnumType, unit)
	for line := range strings.Lines(messages) {
		words := strings.Fields(line)
		m := &descriptorpb.DescriptorProto{Name: proto.String(words[0])}
		for i, word := range words[1:] {
			name, kind, _ := strings.Cut(word, ":")
			f := &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(int32(i + 1)),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
			if inner, many := strings.CutPrefix(kind, "[]"); many {
				kind, f.Label = inner, descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			switch plain, isPlain := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(kind)]; {
			case isPlain:
				f.Type = descriptorpb.FieldDescriptorProto_Type(plain).Enum()
			case kind == "RateLimitUnit":
				f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(), proto.String("."+pkg+"."+kind)
			case strings.Contains(kind, "."):
				f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+kind)
			default:
				f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+pkg+"."+kind)
			}
			m.Field = append(m.Field, f)
		}
		file.MessageType = append(file.MessageType, m)
	}
	built, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	return built.Messages().ByName("RateLimitConfig")
}()

// told is a configuration in JSON as a server tells it.
func told(t interface{ Fatal(...any) }, text string) message.Resource {
	m := dynamicpb.NewMessage(configType)
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err, text)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m) // the name first
	if err != nil {
		t.Fatal(err)
	}
	return message.Resource{Type: MessageName, Value: data}
}

// drawDescriptors draws some, of few names, so that some stand twice.
func drawDescriptors(t *rapid.T, levels int) (list []map[string]any) {
	name := rapid.SampledFrom([]string{"", "a", "b", "a_b", "*", "é"})
	for range rapid.IntRange(0, 3).Draw(t, "descriptors") {
		d := map[string]any{}
		for field, from := range map[string]*rapid.Generator[string]{"key": name, "value": name} {
			if text := from.Draw(t, field); text != "" {
				d[field] = text
			}
		}
		for _, field := range []string{"shadow_mode", "quota_mode", "detailed_metric"} {
			if rapid.Bool().Draw(t, field) {
				d[field] = true
			}
		}
		if rapid.Bool().Draw(t, "metadata") {
			d["metadata"] = map[string]any{"a": 1.5, "b": true, "c": nil, "d": []any{"x", map[string]any{"e": "f"}}}
		}
		if rapid.IntRange(0, 3).Draw(t, "limit") > 0 {
			l := map[string]any{"unit": rapid.SampledFrom(unitNames).Draw(t, "unit"),
				"requests_per_unit": rapid.SampledFrom([]uint32{0, 1, 1 << 31, 1<<32 - 1}).Draw(t, "requests")}
			if rapid.IntRange(0, 5).Draw(t, "unlimited") == 0 {
				l["unlimited"] = true
			}
			if text := name.Draw(t, "name"); text != "" {
				l["name"] = text
			}
			if rapid.IntRange(0, 3).Draw(t, "replaces") == 0 {
				l["replaces"] = []any{map[string]any{"name": name.Draw(t, "replaces")}}
			}
			d["rate_limit"] = l
		}
		if levels > 0 {
			d["descriptors"] = drawDescriptors(t, levels-1)
		}
		list = append(list, d)
	}
	return list
}

// A configuration means the same whether a server tells it or a file has it, and has the same mistakes.
func TestToldAndRead(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var resources []message.Resource
		var files []File
		for i := range rapid.IntRange(0, 3).Draw(t, "domains") {
			root := map[string]any{"domain": rapid.SampledFrom([]string{"", "d", "e", "f", "g"}).Draw(t, "domain"),
				"descriptors": drawDescriptors(t, 2)}
			text, err := json.Marshal(root) // which is YAML, too
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprint("resource ", i)
			files = append(files, File{name, text})
			root["name"] = name
			if text, err = json.Marshal(root); err != nil {
				t.Fatal(err)
			}
			resources = append(resources, told(t, string(text)))
		}
		o := Options{Merge: rapid.Bool().Draw(t, "merge")}
		want, wantErr := Parse(files, o)
		got, err := ParseMessages(resources, o)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("told: %v\nread: %v", err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("told: %+v\nread: %+v", got, want)
		}
		if err == nil {
			taken++
		}
	})
	t.Log(taken, "were right")
	if taken == 0 {
		t.Error("all were wrong")
	}
}

func TestMessagesThatAreWrong(t *testing.T) {
	deep := func(levels int) string {
		return `{"name":"n","domain":"d","descriptors":[` + strings.Repeat(`{"key":"k","descriptors":[`, levels-1) + `{"key":"k"}` +
			strings.Repeat(`]}`, levels-1) + `]}`
	}
	bad := told(t, `{"name":"n","domain":"d"}`)
	bad.Value = append(bad.Value, 0xff)
	for _, of := range []struct {
		resources []message.Resource
		want      string
	}{
		{nil, "<nil>"},
		{[]message.Resource{{Type: "other", Value: nil}}, "a resource: expected " + MessageName + ", not 'other'"},
		{[]message.Resource{bad}, "n: the message is cut off or damaged"},
		{[]message.Resource{{Type: MessageName, Value: []byte("\x0a\x01\xff")}}, "a resource: a text is not UTF-8"},
		{[]message.Resource{told(t, `{"name":"n"}`)}, "n: expected a domain, such as domain: shop"},
		{[]message.Resource{told(t, `{"domain":"d"}`), told(t, `{"name":"n","domain":"d"}`)}, "n: the domain 'd' stands twice"},
		{[]message.Resource{told(t, deep(100))}, "<nil>"},
		{[]message.Resource{told(t, deep(101))}, "n: descriptors stand more than 100 deep in each other"},
	} {
		if _, err := ParseMessages(of.resources, Options{}); fmt.Sprint(err) != of.want {
			t.Errorf("%v, want %s", err, of.want)
		}
	}
	empty := func(n int) error {
		data := append([]byte("\x12\x01d"), bytes.Repeat([]byte{3<<3 | 2, 0}, n)...)
		_, err := ParseMessages([]message.Resource{{Type: MessageName, Value: data}}, Options{})
		return err
	}
	if n := strings.Count(fmt.Sprint(empty(mostDescriptors)), "\n") + 1; n != mostErrors {
		t.Errorf("%d mistakes are told", n)
	}
	if err := fmt.Sprint(empty(mostDescriptors + 1)); err != "a resource: there are more than 250000 descriptors" {
		t.Error(err)
	}
}

// What protobuf's own library reads is read alike.
func FuzzParseMessages(f *testing.F) {
	f.Add(told(f, `{"name":"n","domain":"d","descriptors":[{"key":"k",
		"rate_limit":{"unit":"DAY","requests_per_unit":5,"replaces":[{"name":"x"}]},
		"metadata":{"a":[1,null,"b",true,{"c":{}}]},"descriptors":[{"key":"l","value":"v","shadow_mode":true}]}]}`).Value)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseMessages([]message.Resource{{Type: MessageName, Value: data}}, Options{})
		m := dynamicpb.NewMessage(configType)
		if unread := proto.Unmarshal(data, m); unread != nil {
			return // the library looks into what nobody knows, too
		}
		again, marshals := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if marshals != nil {
			t.Fatal(marshals)
		}
		want, wantErr := ParseMessages([]message.Resource{{Type: MessageName, Value: again}}, Options{})
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || fmt.Sprint(got) != fmt.Sprint(want) && !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v, and as the library writes it %v %v", got, err, want, wantErr)
		}
	})
}
