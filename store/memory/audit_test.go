package memory

import (
	"celld/store/memory/table"
	"fmt"
)

// Audit checks what a store keeps account of against what it holds: the room, the slots, tallies and rings in use and free,
// and when each key ends.
func (s *Store) Audit() error {
	for i := range s.All {
		s.All[i].Mu.Lock()
		defer s.All[i].Mu.Unlock()
	}
	var keys, bytes, spentKeys, spentBytes int64
	for i := range s.All {
		sh := &s.All[i]
		a, err := auditTable(&sh.Table)
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		keys, bytes, spentKeys, spentBytes = keys+a.keys, bytes+a.bytes, spentKeys+a.spentKeys, spentBytes+a.spentBytes
		lists := sh.Lists.Of(table.SpentList).Keys
		if held, spent, next := sh.Held.Load(), sh.SpentHeld.Load(), sh.NextEndNS.Load(); held != sh.InUse || int(spent) != lists || next != sh.Ends.NextNS() {
			return fmt.Errorf("shard %d: published are %d keys, %d spent, the next to end at %d, and there are %d, %d, at %d", i, held, spent, next, sh.InUse, lists, sh.Ends.NextNS())
		}
	}
	if k, b := s.Room.SpentKeys.Load(), s.Room.SpentBytes.Load(); k != spentKeys || b != spentBytes {
		return fmt.Errorf("%d spent keys and %d bytes are accounted for, and %d and %d held", k, b, spentKeys, spentBytes)
	}
	if k, b := s.Room.Keys.Load(), s.Room.Bytes.Load(); k != keys || b != bytes {
		return fmt.Errorf("%d keys and %d bytes are accounted for, and %d and %d held", k, b, keys, bytes)
	}
	return nil
}
