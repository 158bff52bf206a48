package load

import (
	"celld/store"
	"celld/store/memory"
)

// setBack moves every TAT, every expiry and the end of every rule back by ns nanoseconds.
func (l *Loader) setBack(ns, nowNS int64) {
	type entry struct {
		key string
		st  store.Value
	}
	var part []entry
	for at, more := (memory.Position{}), true; more; {
		part = part[:0]
		at, more = l.Store.Export(at, nowNS, func(key []byte, st store.Value) {
			st.TAT -= min(st.TAT, uint64(ns))
			if st.Limits != nil {
				limits := st.Limits.Shift(-ns)
				st.TAT, st.Limits = limits.EndNS(), &limits
			}
			if st.ExpiryNS > 0 {
				st.ExpiryNS = max(st.ExpiryNS-ns, 1)
			}
			part = append(part, entry{string(key), st})
		})
		for _, e := range part {
			_ = l.Store.Update([]byte(e.key), store.Access{NowNS: nowNS, NoTouch: true}, func(store.Value, bool) (store.Value, bool) {
				return e.st, true
			})
		}
	}
	for _, r := range l.Store.Rules(nowNS) {
		if r.UntilNS == 0 {
			continue
		}
		if r.UntilNS -= ns; r.UntilNS > nowNS {
			_, _ = l.Store.PutRule(r, nowNS) // the rule exists, so there is room for it
		} else {
			l.Store.DeleteRule(r, nowNS)
		}
	}
}
