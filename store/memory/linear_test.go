package memory_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"

	"github.com/anishathalye/porcupine"
)

// linearOp is a call on one of two keys, or on both.
type linearOp struct {
	name  string
	key   int
	limit int
	n     int64 // quantity or cost
	nowNS int64
}

// linearReply is what it answers. What is compared says how much of a limit was used.
type linearReply struct {
	decision cell.Decision
	ok       bool
	n        uint64
}

// linearKey is one of the keys in the model.
type linearKey struct {
	there   bool
	tat     uint64
	a, b    uint64 // as the rest of a cell.State
	blocked uint64
	limit   int // that has left it
}

type linearState [2]linearKey

// linear is a store under test, and its model.
type linear struct {
	store  *memory.Store
	names  [2]string
	bucket cell.Bucket
	limits []cell.Limit // none: the keys hold TATs
	evicts bool
}

// find is the look-up under the lock: it removes a dead key.
func (s *linearState) find(op linearOp, key int) *linearKey {
	k := &s[key]
	if k.tat <= uint64(op.nowNS) {
		*k = linearKey{}
	}
	return k
}

// step is what may be after an operation that has answered so: nothing, if it cannot have.
func (m *linear) step(s linearState, op linearOp, got linearReply) []any {
	k := &s[op.key]
	if op.name != "flood" {
		k = s.find(op, op.key)
	}
	before := *k
	var want linearReply
	switch op.name {
	case "throttle":
		var next uint64
		next, want.decision, _ = m.bucket.Throttle(k.tat, op.nowNS, op.n)
		if !want.decision.Limited && op.n != 0 {
			*k = linearKey{}
			if next > uint64(op.nowNS) {
				*k = linearKey{there: true, tat: next}
			}
		}
	case "take", "give":
		l := &m.limits[op.limit]
		st := cell.State{A: k.a, B: k.b, BlockedNS: k.blocked}
		store := false
		if k.there && l.Params != m.limits[k.limit].Params {
			l.Carry(&st, &m.limits[k.limit], op.nowNS, op.nowNS)
			store = l.EndNS(&st) > uint64(op.nowNS)
		}
		if op.name == "take" {
			blocked := st.BlockedNS
			want.decision = l.Decide(&st, op.nowNS, op.n, cell.Take)
			store = store || !want.decision.Limited || st.BlockedNS != blocked
		} else if k.there {
			want.n = uint64(l.Give(&st, op.nowNS, op.n))
			store = store || want.n > 0
		}
		if store {
			*k = linearKey{true, l.EndNS(&st), st.A, st.B, st.BlockedNS, op.limit}
			s.find(op, op.key)
		}
	case "get":
		want.ok, want.n = k.there, k.tat
	case "put":
		want.ok, want.n = k.there, k.tat
		if len(m.limits) == 0 {
			*k = linearKey{there: true, tat: max(k.tat, uint64(op.nowNS)) + uint64(op.n*second)}
		}
	case "delete":
		want.ok = k.there
		*k = linearKey{}
	case "rename", "copy":
		if want.ok = k.there; want.ok {
			s[1-op.key] = *k
			if op.name == "rename" {
				*k = linearKey{}
			}
		}
	case "flush":
		s = linearState{}
	}
	if got != want {
		return nil
	}
	states := []any{s}
	if m.evicts && (op.name == "flood" || k.there && !before.there) {
		for i := range s {
			for _, other := range slices.Clone(states) {
				if t := other.(linearState); t[i].there && (i != op.key || op.name == "flood") {
					t[i] = linearKey{}
					states = append(states, t)
				}
			}
		}
	}
	return states
}

// do does it in the store.
func (m *linear) do(op linearOp, r *rand.Rand) (got linearReply, err error) {
	key, other := []byte(m.names[op.key]), []byte(m.names[1-op.key])
	switch op.name {
	case "throttle":
		reqs := []store.Request{{Key: key, Bucket: m.bucket, Quantity: op.n}, {Key: []byte("beside"), Bucket: m.bucket, Quantity: 0}}
		m.store.ThrottleBatch(reqs[:1+r.IntN(2)], memtest.At(op.nowNS), nil)
		return linearReply{decision: reqs[0].Decision}, reqs[0].Err
	case "take":
		reqs := make([]store.TakeRequest, 1+r.IntN(2))
		for i, key := range [][]byte{key, []byte("beside")}[:len(reqs)] {
			reqs[i] = store.TakeRequest{Calls: []store.Call{{Key: key, Limit: &m.limits[op.limit]}},
				TakeOptions: store.TakeOptions{Cost: op.n * int64(1-i)}}
		}
		m.store.TakeBatch(reqs, memtest.At(op.nowNS), nil)
		return linearReply{decision: reqs[0].Calls[0].Decision}, reqs[0].Err
	case "give":
		given, err := m.store.Give(key, &m.limits[op.limit], nil, op.n, memtest.At(op.nowNS))
		return linearReply{n: uint64(given)}, err
	case "get":
		st, ok := m.store.Get(key, memtest.At(op.nowNS))
		return linearReply{ok: ok, n: st.TAT}, nil
	case "put":
		err = m.store.Update(key, memtest.At(op.nowNS), func(old store.Value, ok bool) (store.Value, bool) {
			got = linearReply{ok: ok, n: old.TAT}
			if len(m.limits) > 0 {
				old.ExpiryNS = store.NoExpiry
				return old, ok
			}
			return store.Value{TAT: max(old.TAT, uint64(op.nowNS)) + uint64(op.n*second)}, true
		})
		return got, err
	case "delete":
		return linearReply{ok: m.store.Delete(key, op.nowNS)}, nil
	case "rename":
		return linearReply{ok: memtest.Did(m.store.Rename(key, other, memtest.At(op.nowNS)))}, nil
	case "copy":
		got.ok, err = m.store.Copy(key, other, true, memtest.At(op.nowNS))
		return got, err
	case "flood":
		_, err = m.store.Throttle(fmt.Append(nil, r.Int()), m.bucket, 1, memtest.At(op.nowNS))
		return got, err
	}
	m.store.Flush()
	return got, nil
}

func (m *linear) draw(r *rand.Rand) linearOp {
	calls, rest := "throttle", []string{"get", "put", "delete", "rename", "copy", "flush"}
	if len(m.limits) > 0 {
		calls, rest = "take", append(rest, "give")
	}
	switch {
	case m.evicts:
		rest = []string{"get", "delete", "rename", "flood", "flood", "flood"}
	case m.store.Len(t0) > 1000: // a flush would make the table a small one
		rest = slices.DeleteFunc(rest, func(name string) bool { return name == "flush" })
	}
	times := []int64{0, 0, 0, 1, second, 3 * second}
	if len(m.limits) > 0 {
		times = []int64{0, 0, 0, 1, 2} // when no key is dead yet: a Take may remove that before, in a step of its own
	}
	op := linearOp{name: calls, key: r.IntN(2), n: 1 + r.Int64N(2), nowNS: t0 + times[r.IntN(len(times))]}
	if len(m.limits) > 0 {
		op.limit = r.IntN(len(m.limits))
	}
	switch x := r.IntN(10); {
	case x < 3:
		if op.name = rest[r.IntN(len(rest))]; op.name == "give" {
			op.nowNS = t0 + slices.Max(times)
		}
	case x < 4 && calls == "throttle":
		op.n = r.Int64N(3) - 2
	}
	return op
}

// round runs callers that do at the same time what was drawn for them, and reports whether the answers are those of some order.
func (m *linear) round(t *testing.T, model porcupine.Model, seed uint64) bool {
	const callers, each = 3, 10
	for _, name := range m.names {
		m.store.Delete([]byte(name), t0)
	}
	var clock, ready atomic.Int64
	histories := [callers][]porcupine.Operation{}
	for i := range histories {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for range each {
			histories[i] = append(histories[i], porcupine.Operation{ClientId: i, Input: m.draw(r)})
		}
	}
	parallel(callers, func(i int) {
		r := rand.New(rand.NewPCG(seed, uint64(100+i)))
		for ready.Add(1); ready.Load() < callers; {
			runtime.Gosched()
		}
		for j := range histories[i] {
			h := &histories[i][j]
			h.Call = clock.Add(1)
			reply, err := m.do(h.Input.(linearOp), r)
			h.Return = clock.Add(1)
			h.Output = reply
			if err != nil {
				t.Error(err)
			}
		}
	})
	all := slices.Concat(histories[:]...)
	if porcupine.CheckOperations(model, all) {
		return true
	}
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, h := range all {
		fmt.Fprintf(&text, "\n%d-%d: caller %d: %+v %+v", h.Call, h.Return, h.ClientId, h.Input, h.Output)
	}
	t.Errorf("no order gives these answers:%s", text.String())
	return false
}

// Calls on the same keys, of which most take no lock, and all that changes keys under the lock: each has its effect at some
// instant between its start and its end. With -count=100 it runs for as many times longer.
func TestCallsAreLinearizable(t *testing.T) {
	rounds := 100
	if celldtest.Thorough {
		rounds = 1000
	}
	bucket := memtest.MustLimit(t, 9, 1, 1)
	for _, texts := range [][]string{
		nil,
		{"9/9s", "9/9s,block=2s"},
		{"9/9s", "9/9s,burst=5"},
		{"9/9s,algo=window", "9/9s,algo=window,block=2s"},
		{"9/3s,algo=slide", "9/3s,algo=slide,block=2s"},
	} {
		kinds := []string{"small", "large"}
		if len(texts) == 0 { // a Take evicts in a step of its own
			kinds = append(kinds, "evicts")
		}
		for _, kind := range kinds {
			t.Run(fmt.Sprint(kind, " ", strings.Join(texts, " ")), func(t *testing.T) {
				m := &linear{bucket: bucket, names: [2]string{"k", "a key that has two tails, as it is as long as this"},
					evicts: kind == "evicts"}
				for _, text := range texts {
					m.limits = append(m.limits, memtest.MustParse(t, text))
				}
				o := memory.Options{Shards: 2, Journal: true}
				if m.evicts {
					o = memory.Options{MaxKeys: 2}
				}
				m.store = memory.New(o)
				if kind == "large" {
					for _, key := range memtest.Keys16(1 << 14) {
						memtest.MustPut(t, m.store, string(key), memtest.Live(t0, hour), t0)
					}
				}
				nondeterministic := porcupine.NondeterministicModel{
					Init: func() []any { return []any{linearState{}} },
					Step: func(state, input, output any) []any {
						return m.step(state.(linearState), input.(linearOp), output.(linearReply))
					},
				}
				model := nondeterministic.ToModel()
				for range rounds {
					if !m.round(t, model, rand.Uint64()) {
						return
					}
				}
			})
		}
	}
}
