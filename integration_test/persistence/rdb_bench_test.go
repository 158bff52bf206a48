package persistence

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"testing"

	"celld/persistence/rdb"
	"celld/persistence/source"
	"celld/store"

	"github.com/hdt3213/rdb/encoder"
	"github.com/hdt3213/rdb/parser"
)

// BenchmarkRDB writes and reads a snapshot of so many limits, in memory, by us and by the library. One operation is one key:
//
//	go -C integration_test test -run '^$' -bench RDB -benchtime 1000000x ./persistence
func BenchmarkRDB(b *testing.B) {
	b.Run("write/ours", func(b *testing.B) {
		out, keys, key := &written{}, someKeys(b.N), []byte(nil)
		b.ReportAllocs()
		b.ResetTimer()
		w := rdb.NewWriter(out, 1.7e18, int64(b.N), "1")
		for i := range keys {
			key = append(key[:0], keys[i]...)
			if w.Add(key, limitOf(i)); w.Full() {
				must(b, w.Flush())
			}
		}
		must(b, w.Finish(1.7e18))
		out.report(b)
	})
	b.Run("write/library", func(b *testing.B) {
		out, keys := &written{}, someKeys(b.N)
		b.ReportAllocs()
		b.ResetTimer()
		buffered := bufio.NewWriterSize(out, 256<<10)
		e := encoder.NewEncoder(buffered)
		must(b, e.WriteHeader())
		must(b, e.WriteDBHeader(0, uint64(b.N), uint64(b.N)))
		var digits [20]byte
		for i, key := range keys {
			st := limitOf(i)
			must(b, e.WriteStringObject(key, st.AppendInteger(digits[:0]), encoder.WithTTL(uint64(rdb.ExpiryMS(st)))))
		}
		must(b, e.WriteEnd())
		must(b, buffered.Flush())
		out.report(b)
	})
	read := func(b *testing.B, read func(file []byte) (keys int, err error)) {
		var file bytes.Buffer
		w := rdb.NewWriter(&file, 1.7e18, int64(b.N), "1")
		for i, key := range someKeys(b.N) {
			w.Add([]byte(key), limitOf(i))
		}
		must(b, w.Finish(1.7e18))
		b.ReportAllocs()
		b.ResetTimer()
		if keys, err := read(file.Bytes()); err != nil || keys != b.N {
			b.Fatalf("%d keys of %d, %v", keys, b.N, err)
		}
	}
	b.Run("read/ours", func(b *testing.B) {
		read(b, func(file []byte) (int, error) {
			var n count
			_, err := rdb.Read(source.New(bytes.NewReader(file), int64(len(file)), nil), &n)
			return int(n), err
		})
	})
	b.Run("read/library", func(b *testing.B) {
		read(b, func(file []byte) (keys int, err error) {
			err = parser.NewDecoder(bytes.NewReader(file)).Parse(func(o parser.RedisObject) bool {
				if _, ok := store.ParseInteger(o.(*parser.StringObject).Value, 0); ok {
					keys++
				}
				return true
			})
			return keys, err
		})
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

func (n *count) String(_, _ []byte, _ int64) error   { *n++; return nil }
func (*count) Other([]byte, string)                  {}
func (*count) Field(*rdb.Fields, []byte, []byte)     {}
func (*count) Hash([]byte, *rdb.Fields, int64) error { return nil }
func (*count) Setting(string, string) bool           { return false }

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
