package memory

import (
	"errors"
)

// errNoRoom says that prepaid must find room first. No caller of the package sees it.
var errNoRoom = errors.New("no room yet")

// prepaid is room that is claimed before the locks of several keys are taken, because none can be made under them. All that
// is needed is claimed at once. So of two callers that wait for room, neither keeps what the other waits for.
type prepaid struct {
	store *shards
	shard *shard // whose keys are the first to be removed for it
	need
	flushes uint64 // by then; a flush since makes it void
	asked   need   // the most that was needed and not there
}

func (n *need) add(m need) { n.keys, n.bytes = n.keys+m.keys, n.bytes+m.bytes }

// run calls do under the locks. When do returns errNoRoom, run pays for what do has asked for and calls it again.
func (p *prepaid) run(locks shardSet, nowNS int64, do func() error) error {
	for {
		p.store.lockAll(locks, nowNS)
		err := do()
		p.release()
		p.store.unlockAll(locks)
		if err != errNoRoom {
			return err
		}
		if err := p.pay(nowNS); err != nil {
			return err
		}
	}
}

// claim takes the room out of what was paid, and the rest out of the store's. If that is not there, nothing is taken.
func (p *prepaid) claim(n need) bool {
	p.check()
	if !p.store.room.claim(need{max(0, n.keys-p.keys), max(0, n.bytes-p.bytes)}) {
		p.asked = need{max(n.keys, p.asked.keys), max(n.bytes, p.asked.bytes)}
		return false
	}
	p.keys, p.bytes = max(0, p.keys-n.keys), max(0, p.bytes-n.bytes)
	return true
}

// release gives back what has not been used. The caller holds a lock.
func (p *prepaid) release() {
	p.check()
	p.store.room.release(p.need)
	p.need = need{}
}

func (p *prepaid) check() {
	if p.flushes != p.store.flushes.Load() {
		p.need = need{}
	}
}

// pay claims what was asked for, and removes other keys for it if it must. The caller holds no lock.
func (p *prepaid) pay(nowNS int64) error {
	p.shard.lock(nowNS)
	defer p.shard.unlock()
	for {
		again, err := p.store.claim(p.shard, p.asked, nowNS)
		if err != nil {
			return err
		}
		if !again {
			p.need, p.flushes = p.asked, p.store.flushes.Load()
			return nil
		}
	}
}
