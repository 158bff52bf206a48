package view

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// content is what the engine holds under a key.
type content struct {
	kind    string // of TYPE
	text    string // of a string
	fields  []field
	expiry  int64  // Unix ms; noExpiry: it has none
	atEnd   bool   // the expiry is when it has nothing left to remember
	never   bool   // PERSIST has said that it has none: see persisted
	until   int64  // Unix ms; where EXPIRE has said that it is after that end, for TTL; else 0: see untilField
	lease   uint64 // the highest ID of its leases
	foreign bool   // nothing that celld writes: it is neither shown nor changed, but it can be deleted and have another expiry
}

type field struct{ name, text string }

// Kinds of content, by their names in TYPE.
const (
	kindNone   = "none"
	kindString = "string"
	kindHash   = "hash"
)

const noExpiry = -1

// Linger is how long celld keeps a state on the engine that has nothing left to remember. So what counted lately leaves a trace: if a key
// or field is absent now, nothing of it has counted for quickest, and nobody has taken from it. Otherwise a call that is decided before
// another and stored after it would not see that call, if its TAT has passed in between. Before, 4 stores with one key of 200/1s on a
// loaded machine let 10 calls too many pass in 10 s now and then.
//
// It begins where a state ends. Where it began with the last call, a call that took a key for a new one, and reached the engine after the
// end of what was there, was charged for a moment before that end: with 1/2s and a pause of the engine, the next passed 0.18 s too soon.
//
// quickest is Linger less a margin for the clocks, as callers know it.
const (
	Linger   = quickest + 50*time.Millisecond
	quickest = store.CommitWithin
)

// persisted is how many ms a key whose TTL reads -1 stays on the engine after it has nothing left to remember. So it goes although PERSIST
// was called, and differs from one that lingers.
const persisted = 2 * int64(Linger/time.Millisecond)

// LingersMs is how many ms a key lingers at most.
const LingersMs = persisted + nearMs

// untilField is the field of a hash that says when EXPIRE lets the key go, in Unix ms, if the key goes before that, as it has nothing left
// to remember. In the text of a TAT it follows a space. Calls drop it, as they end an EXPIRE.
const untilField = " until"

// idField is the field of a hash in which builds before marks kept the highest ID of its leases. It means nothing now, and the next change
// removes it.
const idField = " id"

// nearMs is by how much two readings of one expiry may differ: see readLua.
const nearMs = 2

// foreignCount stands in a view for foreign content: a count that no INCR reaches.
const foreignCount = 0x666f726569676e

// put puts what the engine holds under a key into a view's table.
func (k *viewKey) put(v *View) {
	k.left, k.leftEnd, k.epochs, k.shown, k.deleted = nil, 0, nil, false, false
	value, there := k.value(v)
	if !there {
		return
	}
	end := max(value.TAT, uint64(max(value.Count, 0))) // a count may be a TAT that lingers
	value.ExpiryNS = k.read.shownExpiry(end, max(CeilMs(end), k.leftEnd), v.NowNS)
	// It cannot fail: the table has room for all that a request reads.
	_ = v.Update(k.key, store.Access{NowNS: v.NowNS}, func(store.Value, bool) (store.Value, bool) { return value, true })
	_, k.shown = v.IdleNS(k.key, v.NowNS)
}

// value reads what the engine holds, except its expiry. It returns false if there is nothing for this process.
func (k *viewKey) value(v *View) (value store.Value, there bool) {
	c := &k.read
	switch c.kind {
	case kindNone:
		return value, false
	case kindString:
		text, until, more := strings.Cut(c.text, " ")
		integer, ok := store.ParseInteger([]byte(text), v.NowNS)
		c.foreign = !ok || more && !c.parseUntil(until)
		value = integer
	case kindHash:
		limits, ok := k.limits(v)
		if c.foreign = !ok; ok && len(limits) == 0 {
			return value, false // all limits are of policies that this process does not know, or that are gone
		}
		value.HoldsLimits, value.Limits, value.TAT = true, &limits, limits.EndNS()
	default:
		c.foreign = true
	}
	if c.foreign {
		value = store.Value{Count: foreignCount}
	}
	return value, true
}

// shownExpiry is the expiry that callers see, of a key that the engine keeps until c.expiry and that has nothing left to remember at endMs.
func (c *content) shownExpiry(tatNS uint64, endMs, nowNS int64) int64 {
	over := tatNS <= uint64(nowNS)
	switch {
	case c.expiry == noExpiry:
		c.never = true
		return store.NoExpiry
	case c.foreign:
		return c.instantNS()
	case c.until > 0:
		if c.expiry, c.atEnd = endMs, true; over {
			return store.AtTAT
		}
		return c.until * 1e6
	case c.expiry >= endMs-nearMs && c.expiry <= endMs+Linger.Milliseconds()+nearMs:
		c.expiry, c.atEnd = endMs, true
		return store.AtTAT
	case near(c.expiry, endMs+persisted):
		if c.expiry, c.never = endMs+persisted, true; over {
			return store.AtTAT
		}
		return store.NoExpiry
	case over || c.expiry < endMs:
		return c.instantNS()
	}
	c.atEnd = true // as another program writes it, such as redis-cell, which rounds up to seconds
	return store.AtTAT
}

// instantNS is the expiry in Unix ns. One beyond 2262, of another program, counts as that end.
func (c *content) instantNS() int64 {
	c.expiry = min(c.expiry, math.MaxInt64/1_000_000)
	return c.expiry * 1e6
}

// limits reads a hash. It returns false for one that celld has not written.
func (k *viewKey) limits(v *View) (store.Limits, bool) {
	fields := make([]store.Field, 0, len(k.read.fields))
	k.findEpochs()
	for _, f := range k.read.fields {
		if f.name == untilField && k.read.parseUntil(f.text) || f.name == idField {
			continue
		}
		name, epoch := cutEpoch(f.name)
		one, err := v.ParseField(name, f.text)
		switch {
		case err == policy.ErrNoPolicy:
			if !k.leave(f) {
				return nil, false
			}
			continue
		case err != nil || one.Part:
			return nil, false
		case one.Policy != nil && k.epochOf(v, one.Policy) > epoch:
			continue
		}
		end := (store.Limits{one.LimitState}).EndNS()
		if !one.Limit.Leases && end <= uint64(v.NowNS) && end+uint64(Linger) > uint64(v.NowNS) {
			k.left = append(k.left, f)
			continue
		}
		if one.Limit.HoldsLeases() {
			k.read.lease = max(k.read.lease, one.State.Leases().HighestID())
		}
		fields = append(fields, one)
	}
	limits, _, err := memory.Merge(fields, nil, false, v.NowNS, 0)
	return limits, err == nil && len(k.read.fields) > 0
}

// findEpochs finds the highest epochs of a hash. If one is above this process's, another process has just begun it. Its state counts here,
// too: otherwise what the other drops of the epoch before would be granted again and again.
func (k *viewKey) findEpochs() {
	for _, f := range k.read.fields {
		if name, epoch := cutEpoch(f.name); epoch > 0 {
			if k.epochs == nil {
				k.epochs = make(map[string]uint64)
			}
			limit, _, _ := strings.Cut(name, " ")
			k.epochs[limit] = max(k.epochs[limit], epoch)
		}
	}
}

func (k *viewKey) epochOf(v *View, l *policy.Limit) uint64 {
	epoch := v.views.EpochOf(l)
	if len(k.epochs) > 0 {
		epoch = max(epoch, k.epochs[string(l.AppendName(nil))])
	}
	return epoch
}

// leave keeps a field unchanged whose policy or limit this process does not know. It returns false for a text that is no state.
func (k *viewKey) leave(f field) bool {
	l, st, err := cell.ParseState(f.text)
	if err == nil {
		k.left = append(k.left, f)
		k.leftEnd = max(k.leftEnd, CeilMs(store.Limits{{Limit: l, State: st}}.EndNS()))
	}
	return err == nil
}

// now is what a view's table holds under a key, as the engine is to hold it. found: the table has the key.
func (k *viewKey) now(v *View) (c content, found bool) {
	c.kind = kindNone
	_ = v.Update(k.key, store.Access{NowNS: v.NowNS, NoTouch: true}, func(value store.Value, ok bool) (store.Value, bool) {
		if found = ok; ok {
			c = k.textOf(v, value)
		}
		return value, false
	})
	if !found && !k.shown && !k.deleted {
		return k.read, false
	}
	return c, found
}

func (k *viewKey) textOf(v *View, value store.Value) (c content) {
	if !value.HoldsLimits {
		c.kind, c.text = kindString, string(value.AppendInteger(nil))
		if c.foreign = value.Count == foreignCount; c.foreign {
			c.kind = k.read.kind
		}
	} else {
		c.kind = kindHash
		for i := range *value.Limits {
			l := &(*value.Limits)[i]
			if l.Limit.EndNS(&l.State) > uint64(v.NowNS) {
				c.fields = append(c.fields, field{k.nameOf(v, l), string(l.Limit.AppendState(nil, &l.State))})
				if l.Limit.HoldsLeases() {
					c.lease = max(c.lease, l.State.Leases().HighestID())
				}
			}
		}
		for _, f := range k.left {
			if !slices.ContainsFunc(c.fields, func(other field) bool { return other.name == f.name }) {
				c.fields = append(c.fields, f)
			}
		}
	}
	end := CeilMs(value.TAT)
	if value.HoldsLimits {
		end = max(end, k.leftEnd)
	}
	switch value.ExpiryNS {
	case store.NoExpiry:
		if c.expiry, c.never = noExpiry, true; !c.foreign && value.TAT > uint64(v.NowNS) {
			c.expiry = end + persisted
		}
	case store.AtTAT:
		c.expiry, c.atEnd = end, true
	default:
		if c.expiry = CeilMs(uint64(value.ExpiryNS)); c.expiry > end && !c.foreign && value.TAT > uint64(v.NowNS) {
			c.until, c.expiry, c.atEnd = c.expiry, end, true
			if text := strconv.FormatInt(c.until, 10); c.kind == kindString {
				c.text += " " + text
			} else {
				c.fields = append(c.fields, field{untilField, text})
			}
		}
	}
	return c
}

func (c *content) parseUntil(text string) bool {
	ms, err := strconv.ParseInt(text, 10, 64)
	c.until = ms
	return err == nil && ms > 0 && ms <= math.MaxInt64/1_000_000
}

// nameOf is the name of a limit's field: see cutEpoch.
func (k *viewKey) nameOf(v *View, l *store.LimitState) string {
	name := string(l.AppendName(nil))
	if l.Policy == nil {
		return name
	}
	return PolicyField(l.Policy, k.epochOf(v, l.Policy)) + strings.TrimPrefix(name, string(l.Policy.AppendName(nil)))
}

// cutEpoch cuts the epoch out of the name of a policy's field: "@api/gcra/1m 5" and "@api/gcra/1m 5 leases" are those of a limit of api in
// its epoch 5. Without a number it is 0. A reset of a policy begins another epoch of each of its limits, and so does a limit that was not
// in the policy before: so all that was used of it is void at once, under whatever keys.
func cutEpoch(name string) (without string, epoch uint64) {
	if !strings.HasPrefix(name, "@") {
		return name, 0
	}
	policy, rest, _ := strings.Cut(name, " ")
	number, leases, more := strings.Cut(rest, " ")
	epoch, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return name, 0
	}
	if more {
		policy += " " + leases
	}
	return policy, epoch
}

// CeilMs rounds an instant in Unix ns up to ms.
func CeilMs(ns uint64) int64 {
	ms := ns / 1e6
	if ns%1e6 != 0 {
		ms++
	}
	return int64(ms)
}

func near(a, b int64) bool { return a-b <= nearMs && b-a <= nearMs && a < math.MaxInt64-nearMs }

// steps returns the commands that turn the engine's key into what it is to be, each without the key.
func (c *content) steps(want *content) (steps [][]string) {
	switch {
	case want.kind == kindNone && c.kind == kindNone:
		return nil
	case want.kind == kindNone:
		return [][]string{{"DEL"}}
	case want.foreign: // the same still, except its expiry
	case want.kind == kindString && c.kind == kindNone:
		steps = append(steps, []string{"SET", want.text})
	case want.kind == kindString:
		if c.kind != kindString || c.text != want.text {
			steps = append(steps, []string{"SET", want.text, "KEEPTTL"})
		}
	default:
		if c.kind == kindString {
			steps = append(steps, []string{"DEL"})
			c = &content{kind: kindNone, expiry: noExpiry}
		}
		steps = append(steps, c.hashSteps(want)...)
	}
	if step := c.expiryStep(want, len(steps) > 0); step != nil {
		steps = append(steps, step)
	}
	return steps
}

func (c *content) hashSteps(want *content) (steps [][]string) {
	set, gone := []string{"HSET"}, []string{"HDEL"}
	for _, f := range want.fields {
		if !slices.Contains(c.fields, f) {
			set = append(set, f.name, f.text)
		}
	}
	for _, f := range c.fields {
		if !slices.ContainsFunc(want.fields, func(w field) bool { return w.name == f.name }) {
			gone = append(gone, f.name)
		}
	}
	if len(set) > 1 {
		steps = append(steps, set)
	}
	if len(gone) > 1 {
		steps = append(steps, gone)
	}
	return steps
}

// expiryStep is the command that sets the expiry; nil for none. A view that only reads does not write.
func (c *content) expiryStep(want *content, writes bool) []string {
	had := c.expiry
	if c.kind == kindNone {
		had = noExpiry
	}
	switch {
	case want.expiry == had && want.atEnd == c.atEnd: // else the engine's key lingers, or is not to
		return nil
	case !writes && (want.never && c.never || want.atEnd && c.atEnd && had > want.expiry):
		return nil
	case want.expiry == noExpiry:
		return []string{"PERSIST"}
	}
	at := want.expiry
	if want.atEnd {
		at += Linger.Milliseconds()
	}
	return []string{"PEXPIREAT", strconv.FormatInt(at, 10)}
}
