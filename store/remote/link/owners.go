package link

import (
	"context"
	"slices"

	"github.com/redis/rueidis"
)

// owners finds the lane of each slot of a Cluster. A master's slots have lanes of their own, so that one which is away, or whose clock
// differs, is not taken for another.
type owners [Slots]uint8

// askOwners asks a Cluster which slots have the same master. Lanes stay as they are where it does not say.
func (l *Link) askOwners(client rueidis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Timeout)
	defer cancel()
	rows, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return
	}
	if o := ownersOf(rows); o != nil {
		l.lanes.split(o)
	}
}

// ownersAgain asks in the background: slots may have moved.
func (l *Link) ownersAgain() {
	if client := l.client.Load(); client != nil && l.cluster.Load() {
		go l.askOwners(*client)
	}
}

// ownersOf reads the answer of CLUSTER SLOTS. It returns nil for another.
func ownersOf(rows []rueidis.RedisMessage) *owners {
	type span struct {
		first, last int64
		master      string
	}
	var spans []span
	for _, row := range rows {
		columns, err := row.ToArray()
		if err != nil || len(columns) < 3 {
			return nil
		}
		first, err1 := columns[0].ToInt64()
		last, err2 := columns[1].ToInt64()
		master, err3 := columns[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(master) < 3 || first < 0 || last >= Slots {
			return nil
		}
		id, err := master[2].ToString()
		if err != nil {
			return nil
		}
		spans = append(spans, span{first, last, id})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) }) // so a replica that takes over has the same lanes
	var masters []string
	for _, sp := range spans {
		if !slices.Contains(masters, sp.master) {
			masters = append(masters, sp.master)
		}
	}
	if len(masters) == 0 {
		return nil
	}
	o, each := new(owners), int64(max(laneCount/len(masters), 1))
	for _, sp := range spans {
		begin := int64(slices.Index(masters, sp.master)) * each
		for slot := sp.first; slot <= sp.last; slot++ {
			o[slot] = uint8((begin + slot%each) % laneCount)
		}
	}
	return o
}

// split assigns lanes to these slots from now on. What they knew of the masters' clocks may be of others.
func (l *lanes) split(o *owners) {
	if old := l.owners.Load(); old != nil && *old == *o {
		return
	}
	l.owners.Store(o)
	for i := range l.all {
		l.all[i].clock.Forget()
	}
}
