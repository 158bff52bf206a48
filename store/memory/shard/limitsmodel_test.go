package shard_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"celld/cell"
	"celld/store"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
	"celld/store/policy"
)

// limitsModel is what a store does with keys of both kinds, told as simply as can be: a map.
type limitsModel struct {
	nowNS    int64
	aheadNS  int64 // of the wall time
	keys     map[string]*heldKey
	policies map[string]heldPolicy
	lastID   uint32
	maxKeys  int64
	maxBytes int64 // 0: no limit
	refuses  bool  // NoEviction
}

type heldPolicy struct {
	id    uint32
	limit cell.Limit
}

// heldKey is a key of one kind or the other.
type heldKey struct {
	tat    uint64 // also of limits: the end of the last
	expiry int64
	limits []heldLimit // nil: it holds a TAT
}

type heldLimit struct {
	policy uint32
	limit  cell.Limit
	st     cell.State
}

func cloneState(st cell.State) cell.State {
	st.Ring = append(make([]uint64, 0, len(st.Ring)), st.Ring...)
	return st
}

func (k *heldKey) clone() *heldKey {
	copied := *k
	copied.limits = slices.Clone(k.limits)
	for i := range copied.limits {
		copied.limits[i].st = cloneState(copied.limits[i].st)
	}
	return &copied
}

func cloneKeys(keys map[string]*heldKey) map[string]*heldKey {
	copied := make(map[string]*heldKey, len(keys))
	for key, k := range keys {
		copied[key] = k.clone()
	}
	return copied
}

func (m *limitsModel) endOf(l *cell.Limit, st *cell.State) uint64 {
	if l.Aligned() {
		return cell.ShiftInstant(l.EndNS(st), -m.aheadNS)
	}
	return l.EndNS(st)
}

func (m *limitsModel) wallNS() int64 { return m.nowNS + m.aheadNS }

func (m *limitsModel) timeOf(l *cell.Limit) int64 {
	if l.Aligned() {
		return m.wallNS()
	}
	return m.nowNS
}

func (m *limitsModel) end(k *heldKey) (end uint64) {
	for i := range k.limits {
		end = max(end, m.endOf(&k.limits[i].limit, &k.limits[i].st))
	}
	return end
}

// setWall realigns the keys to a wall time that is so much ahead.
func (m *limitsModel) setWall(keys map[string]*heldKey, aheadNS int64) {
	by := aheadNS - m.aheadNS
	for _, k := range keys {
		for i := range k.limits {
			if h := &k.limits[i]; h.limit.Aligned() {
				h.limit.Realign(&h.st, by, m.nowNS+aheadNS)
			}
		}
	}
}

func (k *heldKey) find(l *cell.Limit, policy uint32) *heldLimit {
	for i := range k.limits {
		h := &k.limits[i]
		if policy != 0 && h.policy == policy || policy == 0 && h.policy == 0 && h.limit.Shape == l.Shape {
			return h
		}
	}
	return nil
}

func ringBytes(st *cell.State) int64 {
	if len(st.Ring) == 0 {
		return 0
	}
	return table.BytesOfRing(st.Ring)
}

func (m *limitsModel) bytes() (n int64) {
	for key, k := range m.keys {
		n += table.CostBytes(len(key))
		for i := range k.limits {
			n += table.LimitEntryBytes + ringBytes(&k.limits[i].st)
		}
	}
	return n
}

func (m *limitsModel) pass(ns int64) {
	m.nowNS += ns
	m.dropDead(m.keys)
}

func (m *limitsModel) dropDead(keys map[string]*heldKey) {
	maps.DeleteFunc(keys, func(_ string, k *heldKey) bool {
		return k.tat <= uint64(m.nowNS) || k.expiry > 0 && k.expiry <= m.wallNS()
	})
}

// full reports that so much more is refused.
func (m *limitsModel) full(keys, bytes int64) bool {
	return m.refuses && (keys > 0 && int64(len(m.keys))+keys > m.maxKeys || bytes > 0 && m.maxBytes > 0 && m.bytes()+bytes > m.maxBytes)
}

// forgetGone drops what a key holds of policies that are gone.
func (m *limitsModel) forgetGone(key string) {
	k := m.keys[key]
	if k == nil || k.limits == nil {
		return
	}
	k.limits = slices.DeleteFunc(k.limits, func(h heldLimit) bool { return h.policy != 0 && m.nameOf(h.policy) == "" })
	if k.tat = m.end(k); len(k.limits) == 0 {
		delete(m.keys, key)
	}
	m.dropDead(m.keys)
}

func (m *limitsModel) nameOf(policy uint32) string {
	for name, p := range m.policies {
		if p.id == policy {
			return name
		}
	}
	return ""
}

// callWork is a call and what it has come to.
type callWork struct {
	*store.Call
	st      cell.State // before
	times   int64
	carried bool  // st, from another limit
	limited bool  // by itself
	most    int64 // that all calls that share its state may take
	fits    bool  // a call before it has made room in the state: what is taken at the same instant is one entry of a log
}

// take is Store.Take. It takes from copies, one call after the other, and keeps them if all have passed.
func (m *limitsModel) take(calls []store.Call, o store.TakeOptions) (limited bool, granted int64, err error) {
	if o.Cost == 0 {
		o.Mode = cell.Peek
	}
	work := make([]callWork, len(calls))
	for i := range calls {
		w := &work[i]
		w.Call, w.times = &calls[i], 1
		for j := range i {
			if m.shares(&calls[j], &calls[i]) {
				if calls[j].Limit.Shape != calls[i].Limit.Shape || calls[j].Limit.Params != calls[i].Limit.Params {
					return false, 0, store.ErrTwoLimits
				}
				w.times++
			}
		}
		k := m.keys[string(calls[i].Key)]
		if k != nil && k.limits == nil {
			return false, 0, store.ErrWrongType
		}
		w.st, w.carried = m.fetch(k, w.Call)
	}
	for i := range work { // once each key is known to hold limits
		if w := &work[i]; o.Mode == cell.Force && !w.Limit.Holds(&w.st, m.timeOf(w.Limit), o.Cost*w.times) {
			return false, 0, store.ErrTooMuch
		}
	}
	cost := o.Cost
	if o.UpTo && o.Mode == cell.Take {
		warms := slices.ContainsFunc(work, func(w callWork) bool { return w.Limit.Algo == cell.Warmup && !w.Limit.Shadow }) // 1 remains
		for cost > 1 && (warms || m.denies(work, cost)) {
			cost--
		}
	}
	if o.Mode != cell.Force {
		limited = m.denies(work, cost)
	}
	before := cloneKeys(m.keys)
	var grown, made int64
	for i := range work {
		w := &work[i]
		w.limited = o.Mode == cell.Take && w.Limit.Decide(&w.st, m.timeOf(w.Limit), cost*w.times, cell.Peek).Limited
		blocks := w.limited && w.Limit.BlockNS > 0 && w.st.BlockedNS <= uint64(m.timeOf(w.Limit))
		if o.Mode == cell.Peek || !blocks && (limited || w.limited) {
			if w.carried && o.Mode != cell.Peek {
				grown += m.adopt(w)
			}
			continue
		}
		n := cost
		if limited {
			n *= w.times
		}
		w.most = 0
		for j := range work {
			if m.shares(work[j].Call, w.Call) {
				work[j].fits = work[j].fits || j > i
				w.most += cost
			}
		}
		mode := o.Mode
		if !limited && !w.limited && w.times > 1 && w.Limit.Algo == cell.Warmup { // which a call after another would not pass
			mode = cell.Force
		}
		newKey, bytes := m.change(w, n, mode)
		grown += bytes
		if newKey {
			made++
		}
	}
	keys := m.keys
	if m.keys = before; m.full(made, grown) {
		return false, 0, store.ErrFull
	}
	m.keys = keys
	m.dropDead(m.keys)
	if !limited && o.Mode != cell.Peek {
		granted = cost
	}
	return limited, granted, nil
}

func (m *limitsModel) shares(a, b *store.Call) bool {
	return string(a.Key) == string(b.Key) && a.PolicyID() == b.PolicyID() && (a.Policy != nil || a.Limit.Shape == b.Limit.Shape)
}

// denies takes from copies, each state once.
func (m *limitsModel) denies(work []callWork, cost int64) bool {
	left := make([]cell.State, len(work))
	for i := range work {
		w := &work[i]
		mode := cell.Take
		left[i] = cloneState(w.st)
		for j := range i {
			if m.shares(work[j].Call, w.Call) {
				left[i] = left[j]
				if w.Limit.Algo == cell.Warmup && !w.Limit.Decide(&w.st, m.timeOf(w.Limit), 1, cell.Peek).Limited {
					mode = cell.Force
				}
			}
		}
		w.Limit.Fit(&left[i], m.timeOf(w.Limit), cost)
		if w.Limit.Decide(&left[i], m.timeOf(w.Limit), cost, mode).Limited && !w.Limit.Shadow {
			return true
		}
	}
	return false
}

// fetch is a copy of the state that a call goes on with, and whether that is another than the key holds.
func (m *limitsModel) fetch(k *heldKey, c *store.Call) (st cell.State, carried bool) {
	if k == nil {
		return cell.State{}, false
	}
	h := k.find(c.Limit, c.PolicyID())
	if h == nil {
		return cell.State{}, false
	}
	st = cloneState(h.st)
	if h.limit.Shape != c.Limit.Shape || h.limit.Params != c.Limit.Params {
		c.Limit.Carry(&st, &h.limit, m.timeOf(&h.limit), m.timeOf(c.Limit))
		carried = m.endOf(c.Limit, &st) > uint64(m.nowNS)
	}
	if most := uint64(m.timeOf(c.Limit) + c.Limit.BlockNS); c.Policy != nil && st.BlockedNS > most {
		st.BlockedNS, carried = most, true
	}
	return st, carried
}

// adopt keeps what a call that changes nothing has carried over, and says how much more room that takes.
func (m *limitsModel) adopt(w *callWork) (grown int64) {
	k := m.keys[string(w.Key)]
	h := k.find(w.Limit, w.PolicyID())
	st, carried := m.fetch(k, w.Call)
	if !carried { // a call before it has kept it
		return 0
	}
	grown = max(0, ringBytes(&st)-ringBytes(&h.st))
	h.limit, h.st = cell.LimitOf(w.Limit.Shape, w.Limit.Params), st
	k.tat = m.end(k)
	return grown
}

// change does one call on the model's own keys, and says how much room that takes.
func (m *limitsModel) change(w *callWork, cost int64, mode cell.Mode) (newKey bool, grown int64) {
	key := string(w.Key)
	k := m.keys[key]
	st, _ := m.fetch(k, w.Call)
	if newKey = k == nil; newKey {
		k = &heldKey{limits: []heldLimit{}}
		m.keys[key] = k
		grown += table.CostBytes(len(key))
	}
	var had int64
	h := k.find(w.Limit, w.PolicyID())
	if h != nil {
		had = table.LimitEntryBytes + ringBytes(&h.st)
	} else {
		k.limits = append(k.limits, heldLimit{policy: w.PolicyID()})
		h = &k.limits[len(k.limits)-1]
	}
	if !w.fits && (mode == cell.Force || !w.limited) {
		w.Limit.Fit(&st, m.timeOf(w.Limit), w.most)
	}
	w.Decision = w.Limit.Decide(&st, m.timeOf(w.Limit), cost, mode)
	h.limit, h.st = cell.LimitOf(w.Limit.Shape, w.Limit.Params), st
	grown += max(0, table.LimitEntryBytes+ringBytes(&st)-had)
	k.tat, k.expiry = m.end(k), store.AtTAT
	return newKey, grown
}

func (m *limitsModel) give(key string, l *cell.Limit, p *policy.Limit, n int64) (int64, error) {
	k := m.keys[key]
	switch {
	case k == nil:
		return 0, nil
	case k.limits == nil:
		return 0, store.ErrWrongType
	}
	h := k.find(l, (&store.Call{Policy: p}).PolicyID())
	if h == nil {
		return 0, nil
	}
	st, carried := m.fetch(k, &store.Call{Limit: l, Policy: p})
	given := l.Give(&st, m.timeOf(l), n)
	if given == 0 && !carried {
		return 0, nil
	}
	if m.full(0, ringBytes(&st)-ringBytes(&h.st)) {
		return 0, store.ErrFull
	}
	h.limit, h.st = cell.LimitOf(l.Shape, l.Params), st
	if k.tat = m.end(k); given > 0 {
		k.expiry = store.AtTAT
	}
	m.dropDead(m.keys)
	return given, nil
}

// text is what a key shows: its kind, its expiry, and its limits that have something to remember.
func (m *limitsModel) text(key string) string {
	k := m.keys[key]
	if k.limits == nil {
		return fmt.Sprintf("%d %d", cell.ShiftInstant(k.tat, m.aheadNS), k.expiry)
	}
	var lines []string
	for i := range k.limits {
		h := &k.limits[i]
		l := store.LimitState{Limit: h.limit, State: m.inWall(h)}
		if h.policy != 0 {
			name := m.nameOf(h.policy)
			if name == "" {
				continue
			}
			l.Policy = policy.New(name, h.limit).Limits[0]
		}
		if m.endOf(&h.limit, &h.st) > uint64(m.nowNS) {
			lines = append(lines, countingText(l, m.wallNS()))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d %s", k.expiry, strings.Join(lines, "; "))
}

// inWall is a state as the store tells it.
func (m *limitsModel) inWall(h *heldLimit) cell.State {
	st := cloneState(h.st)
	if !h.limit.Aligned() {
		h.limit.Shift(&st, m.aheadNS)
	}
	return st
}

// held is a limit as the store has told it.
func (m *limitsModel) held(l *store.LimitState) heldLimit {
	h := heldLimit{limit: l.Limit, st: cloneState(l.State)}
	if l.Policy != nil {
		h.policy = l.Policy.ID
	}
	if !l.Limit.Aligned() {
		l.Limit.ShiftBack(&h.st, m.aheadNS)
	}
	return h
}

// countingText is limitText without calls that no longer count, which a log forgets when it likes.
func countingText(l store.LimitState, nowNS int64) string {
	if l.Limit.Algo == cell.Log {
		l.State = cloneState(l.State)
		l.Limit.Give(&l.State, nowNS, 0)
	}
	return memtest.LimitText(&l)
}

// stateText is limitsModel.text of a state.
func stateText(st store.Value, m *limitsModel) string {
	if !st.HoldsLimits {
		return fmt.Sprintf("%d %d", st.TAT, st.ExpiryNS)
	}
	var lines []string
	for i := range *st.Limits {
		l := &(*st.Limits)[i]
		if h := m.held(l); m.endOf(&h.limit, &h.st) > uint64(m.nowNS) {
			lines = append(lines, countingText(*l, m.wallNS()))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d %s", st.ExpiryNS, strings.Join(lines, "; "))
}
