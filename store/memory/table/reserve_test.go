package table

import (
	"runtime"
	"testing"
	"time"
)

// Each kind of block has a reserve, of 1/64 of what is in use and a megabyte at most. What is dropped is not in use.
func TestReserve(t *testing.T) {
	m := &Reserves{}
	m.Init()
	for name, capacity := range map[string]int{"slabs": cap(m.slabs.blocks), "tails": cap(m.tails.blocks), "chunks": cap(m.chunks.blocks)} {
		if capacity == 0 {
			t.Errorf("no reserve of %s", name)
		}
	}
	m.slabs.used.Store(1 << 20)
	m.tails.used.Store(1 << 20)
	m.chunks.used.Store(1 << 20)
	if m.Drop(); m.slabs.want()+m.tails.want()+m.chunks.want() != 0 {
		t.Error("what is dropped is in use")
	}
	var r reserve[[64 << 10]byte] // 16 of them are a megabyte
	r.init()
	for used := 1; used <= 20*64; used++ {
		if block := r.newBlock(); *block != [64 << 10]byte{} {
			t.Fatal("a block is not zero")
		}
		for deadline := time.Now().Add(time.Minute); r.filling.Load(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the reserve is not filled")
			}
		}
		if want := min(used/64, 16); len(r.blocks) > want || len(r.blocks) < want/2 {
			t.Fatalf("%d are ready while %d are in use", len(r.blocks), used)
		}
	}
	if r.drop(); len(r.blocks) != 0 || r.want() != 0 {
		t.Errorf("%d are ready, and %d wanted", len(r.blocks), r.want())
	}
}
