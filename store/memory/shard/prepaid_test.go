package shard

import (
	"errors"
	"testing"

	"celld/store"
)

// What was paid is used or given back, and is void after a flush, which has given back all.
func TestPrepaid(t *testing.T) {
	for _, flush := range []bool{false, true} {
		s := New(Options{MaxKeys: 3})
		paid := func(asked Need) *Prepaid {
			p := &Prepaid{Store: &s.Shards, Shard: &s.All[0], asked: asked}
			if err := p.pay(0); err != nil {
				t.Fatal(err)
			}
			if flush {
				s.Shards.Flush(0)
			}
			return p
		}
		expect := func(keys, bytes int64) {
			t.Helper()
			if k, b := s.Room.Keys.Load(), s.Room.Bytes.Load(); k != keys || b != bytes {
				t.Errorf("flush %v: %d keys and %d bytes are claimed, want %d and %d", flush, k, b, keys, bytes)
			}
		}
		p := paid(Need{2, 200})
		p.release()
		expect(0, 0)
		p = paid(Need{2, 200})
		if !p.Claim(Need{1, 250}) {
			t.Error("there is room")
		}
		expect(map[bool]int64{false: 2, true: 1}[flush], 250)
		p.release()
		expect(1, 250)
		if p.Claim(Need{3, 10}) || p.asked != (Need{3, 200}) {
			t.Errorf("%+v", p)
		}
		expect(1, 250)
		s.Room.release(Need{1, 250})
		p = paid(p.asked)
		if p.Claim(Need{4, 10}) {
			t.Error("more than there is")
		}
		p.release()
		expect(0, 0)
		if err := p.pay(0); !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
	}
}
