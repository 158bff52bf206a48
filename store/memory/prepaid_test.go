package memory

import (
	"celld/store"
	"testing"
)

// What was paid is used or given back, and is void after a flush, which has given back all.
func TestPrepaid(t *testing.T) {
	for _, flush := range []bool{false, true} {
		s := New(Options{MaxKeys: 3})
		paid := func(asked need) *prepaid {
			p := &prepaid{store: &s.shards, shard: &s.all[0], asked: asked}
			if err := p.pay(0); err != nil {
				t.Fatal(err)
			}
			if flush {
				s.Flush()
			}
			return p
		}
		expect := func(keys, bytes int64) {
			t.Helper()
			if k, b := s.room.keys.Load(), s.room.bytes.Load(); k != keys || b != bytes {
				t.Errorf("flush %v: %d keys and %d bytes are claimed, want %d and %d", flush, k, b, keys, bytes)
			}
		}
		p := paid(need{2, 200})
		p.release()
		expect(0, 0)
		p = paid(need{2, 200})
		if !p.claim(need{1, 250}) {
			t.Error("there is room")
		}
		expect(map[bool]int64{false: 2, true: 1}[flush], 250)
		p.release()
		expect(1, 250)
		if p.claim(need{3, 10}) || p.asked != (need{3, 200}) {
			t.Errorf("%+v", p)
		}
		expect(1, 250)
		s.room.release(need{1, 250})
		p = paid(p.asked)
		if p.claim(need{4, 10}) {
			t.Error("more than there is")
		}
		p.release()
		expect(0, 0)
		if err := p.pay(0); err != store.ErrFull {
			t.Error(err)
		}
	}
}
