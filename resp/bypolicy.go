package resp

import (
	"maps"
	"sync"
	"sync/atomic"

	"celld/cell"
	"celld/store"
)

// mostPolicyNames is how many policies have counters of their own, for metrics: the first that are asked. The others share one. A
// name stays, also when its policy goes.
const mostPolicyNames = 100

const (
	noPolicy     = 0 // of limits without a name
	otherPolicy  = mostPolicyNames + 1
	policySlots  = mostPolicyNames + 2
	algorithms   = int(cell.Warmup) + 1
	waysToDecide = 2 * algorithms * 2 // CL.THROTTLE or CL.TAKE, algorithm, allowed or limited
)

// policyRun counts decisions of one kind: a policy's slot × waysToDecide + the way.
type policyRun struct {
	kind int
	n    int64
}

// decided is what a batch has decided.
type decided struct {
	counts   decisions
	byPolicy []policyRun // of limits that are named or literals, but not of CL.THROTTLE's parameters

	policy uint32 // that was asked last
	slot   int    // its own
}

func (d *decided) empty() bool { return d.counts == (decisions{}) }

func (d *decided) reset() {
	d.counts = decisions{}
	if d.byPolicy = d.byPolicy[:0]; cap(d.byPolicy) > 1024 {
		d.byPolicy = nil
	}
}

// add counts n decisions of a kind. Those of a pipeline are of few kinds, so the last few runs are looked at.
func (d *decided) add(kind int, n int64) {
	for i := len(d.byPolicy) - 1; i >= max(0, len(d.byPolicy)-4); i-- {
		if run := &d.byPolicy[i]; run.kind == kind {
			run.n += n
			return
		}
	}
	d.byPolicy = append(d.byPolicy, policyRun{kind, n})
}

// addAll counts what another has counted.
func (d *decided) addAll(other *decided) {
	for kind, n := range other.counts {
		d.counts[kind] += n
	}
	for _, run := range other.byPolicy {
		d.add(run.kind, run.n)
	}
}

// take counts a call that could take. What it is counted under is the limit that binds.
func (d *decided) take(srv *Server, throttle bool, r *store.TakeRequest) {
	allowed, way := takeAllowed, algorithms
	if throttle {
		allowed, way = policyThrottleAllowed, 0
	}
	d.counts.take(allowed, r)
	c := &r.Calls[r.Taken.Binding]
	if c.Policy != d.policy {
		d.policy, d.slot = c.Policy, srv.stats.byPolicy.slot(srv.store, c.Policy)
	}
	way = (way + int(c.Limit.Algo)) * 2
	if r.Taken.Limited {
		way++
	}
	d.add(d.slot*waysToDecide+way, 1)
}

// settle adds the decisions to the totals unless err says that they are not on the disk.
func (d *decided) settle(srv *Server, lane uint8, err error) {
	if err == nil {
		d.counts.settle(srv, lane)
		for _, run := range d.byPolicy {
			srv.stats.byPolicy.count(lane, run)
		}
	}
	d.reset()
}

// policyCounters are the totals since the start.
type policyCounters struct {
	mu    sync.Mutex                     // who gives out a slot
	names atomic.Pointer[map[string]int] // slots of names; replaced, never changed
	ids   atomic.Pointer[map[uint32]int] // slots of Policy.IDs of these names; the same
	lanes [policySlots]atomic.Pointer[[]policyLane]
}

type policyLane [waysToDecide]atomic.Int64 // three cache lines

// slot returns the counters of a policy.
func (p *policyCounters) slot(policies *store.Store, id uint32) int {
	if id == 0 {
		return noPolicy
	}
	if ids := p.ids.Load(); ids != nil {
		if slot, ok := (*ids)[id]; ok {
			return slot
		}
	}
	policy := policies.PolicyOf(id)
	if policy == nil {
		return otherPolicy
	}
	if names := p.names.Load(); names != nil && len(*names) == mostPolicyNames {
		if _, ok := (*names)[policy.Name]; !ok {
			return otherPolicy
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]int{}
	if had := p.names.Load(); had != nil {
		names = *had
	}
	slot, ok := names[policy.Name]
	if !ok {
		if len(names) == mostPolicyNames {
			return otherPolicy
		}
		slot = len(names) + 1
		names = maps.Clone(names)
		names[policy.Name] = slot
		p.names.Store(&names)
	}
	ids := map[uint32]int{id: slot}
	if had := p.ids.Load(); had != nil && len(*had) < 10*mostPolicyNames { // each reset of a policy gives it another ID
		maps.Copy(ids, *had)
	}
	p.ids.Store(&ids)
	return slot
}

func (p *policyCounters) count(lane uint8, run policyRun) {
	at := &p.lanes[run.kind/waysToDecide]
	lanes := at.Load()
	if lanes == nil {
		made := make([]policyLane, countLanes())
		at.CompareAndSwap(nil, &made)
		lanes = at.Load()
	}
	(*lanes)[int(lane)&(len(*lanes)-1)][run.kind%waysToDecide].Add(run.n)
}

// each calls visit for all kinds that were ever decided. policy is empty for limits without a name.
func (p *policyCounters) each(visit func(command, policy, algorithm, decision string, n int64)) {
	names := [policySlots]string{otherPolicy: "other"}
	if had := p.names.Load(); had != nil {
		for name, slot := range *had {
			names[slot] = name
		}
	}
	for slot := range p.lanes {
		lanes := p.lanes[slot].Load()
		if lanes == nil {
			continue
		}
		for way := range waysToDecide {
			n := int64(0)
			for i := range *lanes {
				n += (*lanes)[i][way].Load()
			}
			if n > 0 {
				command, decision := "cl.throttle", "allowed"
				if way/2 >= algorithms {
					command = "cl.take"
				}
				if way%2 == 1 {
					decision = "limited"
				}
				visit(command, names[slot], cell.Algo(way/2%algorithms).String(), decision, n)
			}
		}
	}
}
