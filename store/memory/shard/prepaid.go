package shard

import "errors"

// ErrNoRoom tells Prepaid.Run to find room first. Run does not return it.
var ErrNoRoom = errors.New("no room yet")

// Prepaid is room that is claimed before the locks of several keys are taken, because none can be made under them. All the room is
// claimed at once: so of two callers that wait for room, neither keeps what the other waits for.
type Prepaid struct {
	Store *Shards
	Shard *Shard // whose keys are the first to be removed for it
	Need
	flushes uint64 // by then; a flush since makes it void
	asked   Need   // the most that was needed and not there
}

func (n *Need) Add(m Need) { n.keys, n.Bytes = n.keys+m.keys, n.Bytes+m.Bytes }

// Run calls do under the locks. If do returns ErrNoRoom, Run pays for what do has asked for and calls it again.
func (p *Prepaid) Run(locks ShardSet, nowNS int64, do func() error) error {
	for {
		p.Store.LockAll(locks, nowNS)
		err := do()
		p.release()
		p.Store.UnlockAll(locks)
		if err != ErrNoRoom {
			return err
		}
		if err := p.pay(nowNS); err != nil {
			return err
		}
	}
}

// Claim takes the room out of what was paid, and the rest out of the store's. If that is not there, nothing is taken.
func (p *Prepaid) Claim(n Need) bool {
	p.check()
	if !p.Store.Room.claim(Need{max(0, n.keys-p.keys), max(0, n.Bytes-p.Bytes)}) {
		p.asked = Need{max(n.keys, p.asked.keys), max(n.Bytes, p.asked.Bytes)}
		return false
	}
	p.keys, p.Bytes = max(0, p.keys-n.keys), max(0, p.Bytes-n.Bytes)
	return true
}

// release gives back what has not been used. The caller holds a lock.
func (p *Prepaid) release() {
	p.check()
	p.Store.Room.release(p.Need)
	p.Need = Need{}
}

func (p *Prepaid) check() {
	if p.flushes != p.Store.flushes.Load() {
		p.Need = Need{}
	}
}

// pay claims what was asked for, and removes other keys for it if it must. The caller holds no lock.
func (p *Prepaid) pay(nowNS int64) error {
	p.Shard.Lock(nowNS)
	defer p.Shard.Unlock()
	for {
		again, err := p.Store.claim(p.Shard, p.asked, nowNS)
		if err != nil {
			return err
		}
		if !again {
			p.Need, p.flushes = p.asked, p.Store.flushes.Load()
			return nil
		}
	}
}
