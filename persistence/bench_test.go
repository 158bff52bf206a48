package persistence

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"testing"

	"celld/store"
	"celld/store/memory"

	"github.com/hdt3213/rdb/encoder"
	"github.com/hdt3213/rdb/parser"
)

// BenchmarkRDB writes and reads a snapshot of so many limits, in memory, by us and by the library. One operation is one key:
//
//	go test -run '^$' -bench RDB -benchtime 1000000x ./persistence
func BenchmarkRDB(b *testing.B) {
	b.Run("write/ours", func(b *testing.B) {
		out, keys, key := &written{}, someKeys(b.N), []byte(nil)
		b.ReportAllocs()
		b.ResetTimer()
		w := newRDBWriter(out, 1.7e18, int64(b.N), "1")
		for i := range keys {
			key = append(key[:0], keys[i]...)
			if w.add(key, limitOf(i)); len(w.buf) >= flushAt {
				must(b, w.flush())
			}
		}
		must(b, w.finish(1.7e18))
		out.report(b)
	})
	b.Run("write/library", func(b *testing.B) {
		out, keys := &written{}, someKeys(b.N)
		b.ReportAllocs()
		b.ResetTimer()
		buffered := bufio.NewWriterSize(out, flushAt)
		e := encoder.NewEncoder(buffered)
		must(b, e.WriteHeader())
		must(b, e.WriteDBHeader(0, uint64(b.N), uint64(b.N)))
		var digits [20]byte
		for i, key := range keys {
			st := limitOf(i)
			must(b, e.WriteStringObject(key, appendTAT(digits[:0], st.TAT), encoder.WithTTL(uint64(expiryMS(st)))))
		}
		must(b, e.WriteEnd())
		must(b, buffered.Flush())
		out.report(b)
	})
	read := func(b *testing.B, read func(file []byte) (keys int, err error)) {
		var file bytes.Buffer
		w := newRDBWriter(&file, 1.7e18, int64(b.N), "1")
		for i, key := range someKeys(b.N) {
			w.add([]byte(key), limitOf(i))
		}
		must(b, w.finish(1.7e18))
		b.ReportAllocs()
		b.ResetTimer()
		if keys, err := read(file.Bytes()); err != nil || keys != b.N {
			b.Fatalf("%d keys of %d, %v", keys, b.N, err)
		}
	}
	b.Run("read/ours", func(b *testing.B) {
		read(b, func(file []byte) (int, error) {
			var n count
			_, err := readRDB(newSource(bytes.NewReader(file), int64(len(file)), nil), &n)
			return int(n), err
		})
	})
	b.Run("read/library", func(b *testing.B) {
		read(b, func(file []byte) (keys int, err error) {
			err = parser.NewDecoder(bytes.NewReader(file)).Parse(func(o parser.RedisObject) bool {
				if _, err := parseTAT(o.(*parser.StringObject).Value); err == nil {
					keys++
				}
				return true
			})
			return keys, err
		})
	})
}

// BenchmarkAOF writes and reads the commands of so many limits, in memory. One operation is one command:
//
//	go test -run '^$' -bench AOF -benchtime 1000000x ./persistence
func BenchmarkAOF(b *testing.B) {
	write := func(out io.Writer, keys []string) {
		var key, buf []byte
		for i := range keys {
			key = append(key[:0], keys[i]...)
			if buf = appendChange(buf, memory.Change{Key: key, State: limitOf(i)}); len(buf) >= flushAt || i == len(keys)-1 {
				_, err := out.Write(buf)
				must(b, err)
				buf = buf[:0]
			}
		}
	}
	b.Run("write", func(b *testing.B) {
		out, keys := &written{}, someKeys(b.N)
		b.ReportAllocs()
		b.ResetTimer()
		write(out, keys)
		out.report(b)
	})
	b.Run("read", func(b *testing.B) {
		var file bytes.Buffer
		write(&file, someKeys(b.N))
		b.ReportAllocs()
		b.ResetTimer()
		n := 0
		if _, _, err := readAOF(newSource(&file, int64(file.Len()), nil), func([][]byte) error { n++; return nil }); err != nil || n != b.N {
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

func limitOf(i int) store.Value { return store.Value{TAT: 1.7e18 + uint64(i)} }

// written counts what is written.
type written struct{ bytes int64 }

func (w *written) Write(p []byte) (int, error) {
	w.bytes += int64(len(p))
	return io.Discard.Write(p)
}

func (w *written) report(b *testing.B) { b.ReportMetric(float64(w.bytes)/float64(b.N), "file-B/op") }

// count counts keys.
type count int

func (n *count) limit([]byte, uint64, int64) error { *n++; return nil }
func (*count) other([]byte, string)                {}
func (*count) field(*fields, []byte, []byte)       {}
func (*count) hash([]byte, *fields, int64) error   { return nil }
func (*count) setting(string, string) bool         { return false }

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
