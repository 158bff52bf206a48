package storetest

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"

	"pgregory.net/rapid"
)

// leased are limits from which leases are taken. Of those of whole seconds and minutes, windows end while leases are held.
var leased = []string{
	"20/10s", "7/3s,burst=5", "9/5s,warmup=7s", "8/5s,algo=window", "8/6s,algo=window,align=clock", "6/4s,algo=slide",
	"9/6s,algo=slide,buckets=3", "8/5s,algo=log", "7/4s,algo=conc", "9/10s,block=2s", "4/10s,algo=window,block=3s,block-at=full",
}

// looksChangeNothing: of two keys that are used alike, one is also looked at. Both get the same answers: what leases held is given back as
// of their ends, and not when somebody looks.
func looksChangeNothing(t *testing.T, k *keeper) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		k.nowNS += 1000 * second
		keys := []string{fmt.Sprint("plain ", n), fmt.Sprint("looked at ", n)}
		l := literal(t, rapid.SampledFrom(leased).Draw(rt, "limit"))
		other := cell.LimitOf(l.Shape, cell.Params{Count: l.Count + 3, Burst: l.Burst})
		var ids [][]int64 // of both
		same := func(what string, ask func(key string) any) {
			if plain, looked := ask(keys[0]), ask(keys[1]); plain != looked {
				rt.Fatalf("%s, %s at %d: %+v, looked at %+v", l, what, k.nowNS, plain, looked)
			}
		}
		take := func(key string, by *cell.Limit, o store.TakeOptions) *store.TakeRequest {
			return k.take(t, o, store.Call{Key: []byte(key), Limit: by})
		}
		change := func(what string, how func(keys store.Keys, key []byte, of int, a store.Access) bool) {
			did := map[string]bool{}
			for i, key := range keys {
				k.do(t, func(of store.Keys, a store.Access) { did[key] = how(of, []byte(key), i, a) }, key)
			}
			same(what, func(key string) any { return did[key] })
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			k.nowNS += rapid.SampledFrom([]int64{0, 1, second / 10, second / 3, second, 3 * second}).Draw(rt, "ns")
			lease := len(ids)
			if lease > 0 {
				lease = rapid.IntRange(0, lease-1).Draw(rt, "lease")
			}
			cost := rapid.Int64Range(1, 8).Draw(rt, "cost")
			by := rapid.SampledFrom([]*cell.Limit{l, l, l, &other}).Draw(rt, "by")
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what < 2:
				k.look(t, rt, keys[1], by)
			case what == 2 && lease < len(ids):
				change("renewed", func(of store.Keys, key []byte, i int, a store.Access) bool {
					did, _ := of.Renew(key, ids[lease][i], cost*second, a)
					return did
				})
			case what == 3 && lease < len(ids):
				change("settled", func(of store.Keys, key []byte, i int, a store.Access) bool {
					did, _ := of.Settle(key, ids[lease][i], cost-1, a)
					return did
				})
			case what == 4:
				given := map[string]int64{}
				change("given", func(of store.Keys, key []byte, _ int, a store.Access) bool {
					n, more, err := of.GiveSome(key, by, nil, cost, a)
					given[string(key)] = n
					return more && err == nil
				})
				same("given", func(key string) any { return given[key] })
			default:
				o := store.TakeOptions{Cost: cost}
				if rapid.IntRange(0, 5).Draw(rt, "force") == 0 {
					o.Mode = cell.Force
				}
				leaseNS := int64(0)
				if l.Algo != cell.Conc && rapid.Bool().Draw(rt, "leased") {
					leaseNS = rapid.SampledFrom([]int64{second / 10, second / 2, 2 * second, 9 * second}).Draw(rt, "for")
				}
				var both []int64
				same("taken", func(key string) any {
					o.Terms = &store.Terms{LeaseNS: leaseNS}
					r := take(key, by, o)
					both = append(both, o.Terms.Lease)
					return fmt.Sprintf("%+v, %+v", r.Taken, r.Calls[0].Decision)
				})
				if both[0] != 0 {
					ids = append(ids, both)
				}
			}
		}
		k.nowNS += second / 2
		same("left", func(key string) any { return take(key, l, store.TakeOptions{Mode: cell.Peek}).Calls[0].Decision })
	})
}

// look looks at a key in one of the ways that there are.
func (k *keeper) look(t *testing.T, rt *rapid.T, key string, l *cell.Limit) {
	how := rapid.IntRange(0, 3).Draw(rt, "look")
	if how == 0 {
		k.left(t, key, l)
		return
	}
	k.do(t, func(of store.Keys, a store.Access) {
		switch how {
		case 1:
			of.Get([]byte(key), a)
		case 2:
			_, _ = of.Limits([]byte(key), a, func(*store.LimitState) {})
		default:
			_, _ = of.Release([]byte(key), 1, a) // no such lease
		}
	}, key)
}
