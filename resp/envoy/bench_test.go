package envoy

import (
	"testing"

	"celld/resp/envoy/message"
)

// BenchmarkCall is a call without gRPC: its message is read, it is decided, and the answer is written.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b, Options{}, `
domain: shop
descriptors:
  - key: client
    descriptors:
      - key: path
        rate_limit: {unit: minute, requests_per_unit: 1000000}
`)
	entry := func(key, value string) []byte { return textField(textField(nil, 1, key), 2, value) }
	descriptor := bytesField(bytesField(nil, 1, entry("client", "10.1.2.3")), 1, entry("path", "/login"))
	data := bytesField(textField(nil, 1, "shop"), 2, descriptor)
	b.ReportAllocs()
	for b.Loop() {
		q, err := message.Unmarshal(data)
		if err != nil {
			b.Fatal(err)
		}
		answer, err := w.ask(q)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := answer.Marshal(make([]byte, 0, 128)); err != nil {
			b.Fatal(err)
		}
	}
}

// textField and bytesField append fields as protobuf writes them, of fewer than 128 bytes.
func textField(b []byte, number byte, text string) []byte { return bytesField(b, number, []byte(text)) }

func bytesField(b []byte, number byte, text []byte) []byte {
	return append(append(b, number<<3|2, byte(len(text))), text...)
}
