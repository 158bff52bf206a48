package memory

import (
	"celld/store/memory/table"
	"fmt"
)

// Audit checks what a store keeps account of against what it holds: the room, the slots, tallies and rings in use and free,
// and when each key ends.
func (s *Store) Audit() error {
	for i := range s.all {
		s.all[i].mu.Lock()
		defer s.all[i].mu.Unlock()
	}
	var keys, bytes, spentKeys, spentBytes int64
	for i := range s.all {
		sh := &s.all[i]
		a, err := auditTable(&sh.Table)
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		keys, bytes, spentKeys, spentBytes = keys+a.keys, bytes+a.bytes, spentKeys+a.spentKeys, spentBytes+a.spentBytes
		lists := sh.Lists.Of(table.SpentList).Keys
		if held, spent, next := sh.held.Load(), sh.spentHeld.Load(), sh.nextEndNS.Load(); held != sh.InUse || int(spent) != lists || next != sh.Ends.NextNS() {
			return fmt.Errorf("shard %d: published are %d keys, %d spent, the next to end at %d, and there are %d, %d, at %d", i, held, spent, next, sh.InUse, lists, sh.Ends.NextNS())
		}
	}
	if k, b := s.room.spentKeys.Load(), s.room.spentBytes.Load(); k != spentKeys || b != spentBytes {
		return fmt.Errorf("%d spent keys and %d bytes are accounted for, and %d and %d held", k, b, spentKeys, spentBytes)
	}
	if k, b := s.room.keys.Load(), s.room.bytes.Load(); k != keys || b != bytes {
		return fmt.Errorf("%d keys and %d bytes are accounted for, and %d and %d held", k, b, keys, bytes)
	}
	return nil
}
