package link

import (
	"context"
	"slices"

	"github.com/redis/rueidis"
)

// owners is the pipeline of each hash slot of a Cluster. Each master has pipelines of its own, so that a master which is away, or whose
// clock differs, does not affect others.
type owners [hashSlots]uint8

// readOwners asks a Cluster which hash slots have the same master. If it does not say, pipelines stay as they are.
func (l *Link) readOwners(client rueidis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Timeout)
	defer cancel()
	rows, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return
	}
	if o := ownersOf(rows); o != nil {
		l.pipelines.split(o)
	}
}

// readOwnersAgain asks in the background: hash slots may have moved.
func (l *Link) readOwnersAgain() {
	if client := l.client.Load(); client != nil && l.cluster.Load() {
		go l.readOwners(*client)
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
		if err1 != nil || err2 != nil || err3 != nil || len(master) < 3 || first < 0 || last >= hashSlots {
			return nil
		}
		id, err := master[2].ToString()
		if err != nil {
			return nil
		}
		spans = append(spans, span{first, last, id})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) }) // so a replica that takes over gets the same pipelines
	var masters []string
	for _, sp := range spans {
		if !slices.Contains(masters, sp.master) {
			masters = append(masters, sp.master)
		}
	}
	if len(masters) == 0 {
		return nil
	}
	o, each := new(owners), int64(max(pipelineCount/len(masters), 1))
	for _, sp := range spans {
		begin := int64(slices.Index(masters, sp.master)) * each
		for slot := sp.first; slot <= sp.last; slot++ {
			o[slot] = uint8((begin + slot%each) % pipelineCount)
		}
	}
	return o
}

// split assigns pipelines by these owners from now on, and forgets the clocks, which may be those of other masters.
func (l *pipelines) split(o *owners) {
	if old := l.owners.Load(); old != nil && *old == *o {
		return
	}
	l.owners.Store(o)
	for i := range l.all {
		l.all[i].clock.Forget()
	}
}
