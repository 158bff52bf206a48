package shard_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// leaseModel is a store with leases of two limits under a few keys, and lists beside it. One limit is a policy of algo=conc. The other
// is a log that is longer than the test, so nothing comes back to it by time.
type leaseModel struct {
	s     *memory.Store
	now   int64
	ahead int64 // of the wall clock
	last  int64 // ID
	count int64 // of the policy
	lasts int64 // its period
	held  []heldLease
	spent map[string]int64 // from the log, for good
}

type heldLease struct {
	key   string
	conc  bool
	id    int64
	cost  int64
	end   int64
	name  string
	bound bool
}

func (m *leaseModel) a() store.Access { return store.Access{NowNS: m.now} }

func (m *leaseModel) free(key string, conc bool) int64 {
	free := m.count
	if !conc {
		free = 20 - m.spent[key]
	}
	for _, l := range m.held {
		if l.key == key && l.conc == conc {
			free -= l.cost
		}
	}
	return free
}

func (m *leaseModel) drop(gone func(heldLease) bool) { m.held = slices.DeleteFunc(m.held, gone) }

func (m *leaseModel) call(t memtest.Failer, key string, conc bool) store.Call {
	if conc || key == "b" { // under b the log is a policy, too
		name := "p"
		if !conc {
			name = "q"
		}
		p := m.s.PolicyNamed(name)
		return store.CallOf([]byte(key), p.Limits[0])
	}
	l := parseLease(t, "20/366d,algo=log")
	return store.Call{Key: []byte(key), Limit: &l}
}

func parseLease(t memtest.Failer, text string) cell.Limit {
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m *leaseModel) setPolicy(t memtest.Failer) {
	l := parseLease(t, fmt.Sprintf("%d/%dus,algo=conc", m.count, m.lasts/1000))
	if _, err := m.s.SetPolicy("p", []cell.Limit{l}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.s.SetPolicy("q", []cell.Limit{parseLease(t, "20/366d,algo=log")}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
}

func (m *leaseModel) take(t *rapid.T, key string) {
	l := heldLease{
		key: key, conc: rapid.Bool().Draw(t, "conc"), cost: rapid.Int64Range(1, 6).Draw(t, "cost"), end: m.now + m.lasts,
		name: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "name"), bound: rapid.IntRange(0, 5).Draw(t, "bound") == 0,
	}
	terms := store.Terms{Name: l.name, Bound: l.bound}
	if !l.conc {
		terms.LeaseNS = rapid.Int64Range(1, 60).Draw(t, "s") * second
		l.end = m.now + terms.LeaseNS
	}
	free := m.free(key, l.conc)
	o := store.TakeOptions{Cost: l.cost, Terms: &terms}
	if rapid.IntRange(0, 5).Draw(t, "force") == 0 {
		o.Mode = cell.Force
	}
	taken, err := m.s.Take([]store.Call{m.call(t, key, l.conc)}, o, m.a())
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(m.held, func(h heldLease) bool { return l.name != "" && h.key == key && h.name == l.name })
	passes := l.cost <= free || o.Mode == cell.Force
	switch {
	case first >= 0:
		if h := m.held[first]; taken.Limited || taken.Granted != h.cost || terms.Lease != h.id {
			t.Fatalf("a repeat of %+v: %+v, %d", h, taken, terms.Lease)
		}
	case taken.Limited == passes || taken.Limited && terms.Lease != 0 || passes && (terms.Lease <= m.last || taken.Granted != l.cost):
		t.Fatalf("%d of %d free: %+v, %d after %d", l.cost, free, taken, terms.Lease, m.last)
	case passes:
		l.id, m.last = terms.Lease, terms.Lease
		m.held = append(m.held, l)
	}
}

// restart copies all to a new store, as files do, whose clock may have been set back.
func (m *leaseModel) restart(t *rapid.T) {
	other := memory.New(memory.Options{})
	other.SetWall(m.now+m.ahead, m.now)
	for _, kind := range []policy.Kind{policy.PolicySetting, policy.IDSetting} {
		for _, name := range m.s.Settings(kind) {
			setting := policy.Setting{Kind: kind, Name: name}
			text, _ := m.s.SettingText(setting)
			if err := other.PutSetting(setting, text, m.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	for at, more := m.s.StartExport(), true; more; {
		at, more = m.s.Export(at, m.now, func(key []byte, st store.Value) {
			var fields []store.Field
			for _, l := range *st.Limits {
				name, text := string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))
				f, err := other.ParseField(name, text)
				if err != nil {
					t.Fatalf("%s %s: %v", name, text, err)
				}
				fields = append(fields, f)
			}
			if _, err := other.PutFields(key, fields, false, m.a()); err != nil {
				t.Fatal(err)
			}
		})
	}
	m.ahead -= rapid.SampledFrom([]int64{0, 3600 * second}).Draw(t, "set back by")
	other.SetWall(m.now+m.ahead, m.now)
	m.s = other
	m.drop(func(l heldLease) bool { return l.bound })
}

func (m *leaseModel) forget(key string) {
	m.drop(func(l heldLease) bool { return l.key == key })
	delete(m.spent, key)
}

// change does something with a lease that there may be.
func (m *leaseModel) change(t *rapid.T, key string) {
	id := rapid.SampledFrom([]int64{0, -1, m.last, m.last + 1}).Draw(t, "ID")
	if len(m.held) > 0 && rapid.IntRange(0, 4).Draw(t, "there") > 0 {
		l := rapid.SampledFrom(m.held).Draw(t, "lease")
		key, id = l.key, l.id
	}
	at := slices.IndexFunc(m.held, func(l heldLease) bool { return l.key == key && l.id == id })
	n := rapid.Int64Range(0, 8).Draw(t, "n")
	var done bool
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		ns := rapid.Int64Range(1, 90).Draw(t, "renewed for") * second
		if done = memtest.Did(m.s.Renew([]byte(key), id, ns, m.a())); at >= 0 {
			m.held[at].end = m.now + ns
		}
	default:
		if n == 0 {
			done = memtest.Did(m.s.Release([]byte(key), id, m.a()))
		} else {
			done = memtest.Did(m.s.Settle([]byte(key), id, n, m.a()))
		}
		if memtest.Did(m.s.Settle([]byte(key), id, n, m.a())) {
			t.Fatalf("%d was settled twice", id)
		}
		if at >= 0 {
			if !m.held[at].conc {
				m.spent[key] += n
			}
			m.held = slices.Delete(m.held, at, at+1)
		}
	}
	if done != (at >= 0) {
		t.Fatalf("%d under %s: %v, and it is %d of %+v", id, key, done, at, m.held)
	}
}

func (m *leaseModel) check(t *rapid.T) {
	for _, key := range leaseKeys {
		for _, conc := range []bool{false, true} {
			calls := []store.Call{m.call(t, key, conc)}
			taken, err := m.s.Take(calls, store.TakeOptions{Mode: cell.Peek, Cost: 1}, m.a())
			free := m.free(key, conc)
			d := calls[0].Decision
			if err != nil || d.Remaining != max(0, free) || taken.Limited != (free < 1) {
				t.Fatalf("%s, conc %v: %+v, %v; %d free: %+v", key, conc, d, err, free, m.held)
			}
			if taken.Limited && conc {
				m.checkRetry(t, key, d.RetryAfterNS)
			}
		}
	}
}

// checkRetry: the call passes when enough leases have ended, and no sooner.
func (m *leaseModel) checkRetry(t *rapid.T, key string, retryNS uint64) {
	for _, sooner := range []int64{0, 1} {
		then := leaseModel{count: m.count, held: slices.Clone(m.held)}
		then.drop(func(l heldLease) bool { return l.end <= m.now+int64(retryNS)-sooner })
		if passes := then.free(key, true) > 0; passes != (sooner == 0) {
			t.Fatalf("%d ns before %d ns: passes %v: %+v", sooner, retryNS, passes, m.held)
		}
	}
}

var leaseKeys = []string{"a", "b", "c"}

// However leases are taken, renewed, released, settled and end, a limit has what they do not hold, IDs grow, and when all is quiet
// everything has come back.
func TestLeasesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &leaseModel{s: memory.New(memory.Options{}), now: t0, count: 10, lasts: 30 * second, spent: map[string]int64{}}
		m.setPolicy(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.SampledFrom(leaseKeys).Draw(t, "key")
			switch rapid.IntRange(0, 13).Draw(t, "step") {
			default:
				m.take(t, key)
			case 5, 6, 7:
				m.change(t, key)
			case 8, 9:
				m.now += rapid.SampledFrom([]int64{0, 1, second, 10 * second, 40 * second}).Draw(t, "later")
				m.drop(func(l heldLease) bool { return l.end <= m.now })
			case 10:
				m.restart(t)
			case 11:
				m.s.Delete([]byte(key), m.now)
				m.forget(key)
			case 12:
				m.count = rapid.Int64Range(1, 20).Draw(t, "count")
				m.setPolicy(t)
			case 13:
				to := rapid.SampledFrom(leaseKeys).Draw(t, "to")
				if key == "b" || to == "b" { // another limit
					break
				}
				if memtest.Did(m.s.Rename([]byte(key), []byte(to), memtest.At(m.now))) && key != to {
					m.forget(to)
					m.spent[to] = m.spent[key]
					for i := range m.held {
						if m.held[i].key == key {
							m.held[i].key = to
						}
					}
					m.forget(key)
				}
			}
			m.check(t)
		}
		m.now += 120 * second
		m.held = nil
		m.check(t)
		for _, key := range leaseKeys {
			m.s.Delete([]byte(key), m.now)
		}
		if st := m.s.Stats(m.now); st.Bytes != 0 {
			t.Fatalf("%d bytes are left", st.Bytes)
		}
	})
}
