package remote

import (
	"slices"
	"strconv"
)

// Fact is a field of INFO.
type Fact struct{ Name, Value string }

// Facts are what is known of the engine, for INFO.
func (s *Store) Facts() []Fact {
	mode := "standalone"
	switch {
	case s.cluster.Load():
		mode = "cluster"
	case s.link.address.Master != "":
		mode = "sentinel"
	}
	facts := []Fact{{"store", s.link.name}, {"store_engine_kind", mode}}
	who, since := s.Mode()
	facts = append(facts, Fact{"store_mode", who}, Fact{"store_mode_since", strconv.FormatInt(since.Unix(), 10)})
	away := s.Away()
	facts = append(facts, Fact{"store_away", flag(away != nil)})
	if away != nil {
		facts = append(facts, Fact{"store_away_because", away.Error()})
	}
	if n, known := s.coverage.lacks(); known && s.cluster.Load() {
		facts = append(facts, Fact{"store_slots_without_master", strconv.Itoa(n)})
	}
	l := &s.link.nodes
	l.mu.Lock()
	defer l.mu.Unlock()
	var versions []string
	for _, n := range l.all {
		if !slices.Contains(versions, n.version) {
			versions = append(versions, n.version)
		}
	}
	slices.Sort(versions)
	for i, v := range versions {
		if i == 0 {
			facts = append(facts, Fact{"store_engine_version", v})
		} else {
			facts[len(facts)-1].Value += ", " + v
		}
	}
	if n := l.last; n != nil {
		facts = append(facts, Fact{"store_engine_eviction", n.eviction}, Fact{"store_engine_persistence", n.persistence})
		if n.clockKnown {
			facts = append(facts, Fact{"store_engine_clock_ahead_usec", strconv.FormatInt(n.clock.Microseconds(), 10)})
		}
	}
	return append(facts, Fact{"store_waiting_bytes", strconv.FormatInt(s.queues.bytes.Load(), 10)})
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
