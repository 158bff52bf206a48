package aof

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"celld/persistence/source"
	"celld/store"
	"celld/store/memory"
)

// BenchmarkAOF writes and reads the commands of so many limits, in memory. One operation is one command:
//
//	go test -run '^$' -bench AOF -benchtime 1000000x ./persistence/aof
func BenchmarkAOF(b *testing.B) {
	write := func(out io.Writer, keys []string) {
		var key, buf []byte
		for i := range keys {
			key = append(key[:0], keys[i]...)
			if buf = AppendChange(buf, memory.Change{Key: key, State: store.Value{TAT: 1.7e18 + uint64(i)}}); len(buf) >= 256<<10 ||
				i == len(keys)-1 {
				if _, err := out.Write(buf); err != nil {
					b.Fatal(err)
				}
				buf = buf[:0]
			}
		}
	}
	b.Run("write", func(b *testing.B) {
		keys := someKeys(b.N)
		b.ReportAllocs()
		b.ResetTimer()
		write(io.Discard, keys)
	})
	b.Run("read", func(b *testing.B) {
		var file bytes.Buffer
		write(&file, someKeys(b.N))
		b.ReportAllocs()
		b.ResetTimer()
		n := 0
		src := source.New(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
		if _, _, err := Read(src, func([][]byte) error { n++; return nil }); err != nil || n != b.N {
			b.Fatalf("%d commands of %d, %v", n, b.N, err)
		}
	})
}

// someKeys are so many keys of 23 bytes.
func someKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("ratelimit:user:%08d", i)
	}
	return keys
}
