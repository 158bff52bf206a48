package shard_test

import (
	"fmt"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// What is told under one lock is some 1 MB, however long the keys and their logs are: a buffer would be grown for more.
func TestStepsAreOfAMegabyte(t *testing.T) {
	const keys, most = 400, 1<<20 + 200<<10 // a key more than that
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	name := func(i int) string { return fmt.Sprint(i, strings.Repeat("k", 60_000)) }
	fill := func() {
		for i := range keys {
			if i%2 == 0 {
				memtest.MustPut(t, s, name(i), memtest.Live(t0, second), t0)
				continue
			}
			field, err := s.ParseField("log/1h", fmt.Sprintf("limit=10000/1h,algo=log calls=%d:1%s", t0, strings.Repeat(",+1:1", 9_000)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.PutFields(fmt.Append(nil, i), []store.Field{field}, false, memtest.At(t0+9_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func(key []byte, st store.Value) (n int) {
		if n = len(key); st.Limits != nil {
			for _, l := range *st.Limits {
				n += 8 * len(l.State.Ring)
			}
		}
		return n
	}
	check := func(what string, step func(tell func(key []byte, st store.Value)) (more bool)) {
		t.Helper()
		told := map[string]int{}
		for more := true; more; {
			bytes := 0
			more = step(func(key []byte, st store.Value) {
				told[string(key)]++
				bytes += size(key, st)
			})
			if bytes > most {
				t.Fatalf("%s: a step tells %d bytes", what, bytes)
			}
		}
		for key, times := range told {
			if times != 1 {
				t.Fatalf("%s: %.20s is told %d times", what, key, times)
			}
		}
		if len(told) != keys {
			t.Errorf("%s: %d keys are told", what, len(told))
		}
	}
	drain := func(tell func(key []byte, st store.Value)) bool {
		return s.Drain(func(c memory.Change) { tell(c.Key, c.State) })
	}
	fill()
	check("changes", drain)
	position := s.StartExport()
	defer s.EndExport(position)
	check("all keys", func(tell func(key []byte, st store.Value)) (more bool) {
		position, more = s.Export(position, t0+9_000, tell)
		return more
	})
	for i := range keys {
		s.Delete([]byte(name(i)), t0)
		s.Delete(fmt.Append(nil, i), t0)
	}
	gone := 0
	for more := true; more; {
		bytes := 0
		more = s.Drain(func(c memory.Change) {
			gone++
			bytes += len(c.Key)
		})
		if bytes > most {
			t.Fatalf("a step tells of %d bytes that are gone", bytes)
		}
	}
	if gone == 0 {
		t.Error("no key is gone")
	}
}
