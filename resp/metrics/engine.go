package metrics

import (
	"time"

	"celld/store"
)

// Engine declares what is known of the engine.
func Engine(l *List, f store.Facts) {
	l.Gauge(Metric{Name: "celld_store_info",
		Help:   "The engine's kind and who decides (mode), as labels.",
		Labels: []string{"kind", f.Kind, "mode", f.Mode}, Value: 1})
	l.Field("store", f.Name)
	l.Gauge(Metric{Field: "store_engine_kind", JSON: "engine.kind", Value: f.Kind})
	l.Gauge(Metric{Field: "store_mode", JSON: "engine.mode", Value: f.Mode})
	l.Gauge(Metric{Field: "store_mode_since", JSON: "engine.since_unix_ms", Value: f.Since.Truncate(time.Second)})
	l.Gauge(Metric{Field: "store_away", Name: "celld_store_away", Help: "1 while the engine does not answer.", Value: f.Away != nil})
	if f.Away != nil {
		l.Field("store_away_because", f.Away.Error())
	}
	if f.SlotsKnown {
		l.Gauge(Metric{Field: "store_slots_without_master", Name: "celld_store_slots_without_master",
			Help: "Slots of the engine's Cluster without a master.", Value: f.SlotsWithoutMaster})
	}
	if f.Version != "" {
		l.Gauge(Metric{Field: "store_engine_version", JSON: "engine.version", Value: f.Version})
	}
	if f.Eviction != "" {
		l.Field("store_engine_eviction", f.Eviction)
		l.Field("store_engine_persistence", f.Persistence)
	}
	if f.ClockKnown {
		l.Field("store_engine_clock_ahead_usec", f.ClockAhead.Microseconds())
	}
	l.Gauge(Metric{Field: "store_waiting_bytes", Name: "celld_store_waiting_bytes", Help: "Bytes of calls that wait for the engine.",
		Value: f.WaitingBytes})
}

// EngineCounters declares what is counted of the engine.
func EngineCounters(l *List, n store.Counts) {
	l.Counter(Metric{Field: "store_calls", Name: "celld_store_commands_total", JSON: "engine.calls",
		Help: "Commands sent to the engine; one may decide many calls.", Value: n.Calls})
	l.Counter(Metric{Field: "store_failures", Name: "celld_store_failures_total", JSON: "engine.failures",
		Help:  "Commands that the engine did not answer or could not serve.",
		Value: n.Failures})
	l.Counter(Metric{Field: "store_timeouts", Name: "celld_store_timeouts_total", Help: "Commands that the engine did not answer in time.",
		Value: n.Timeouts})
	l.Counter(Metric{Field: "store_conflicts", Name: "celld_store_conflicts_total",
		Help: "Decisions repeated because the key had changed meanwhile.", Value: n.Conflicts})
	l.Counter(Metric{Field: "store_denials_remembered", Name: "celld_store_denials_remembered_total",
		Help: "Calls denied without asking the engine again.", Value: n.DenialsRemembered})
	l.Counter(Metric{Field: "store_decided_ahead", Name: "celld_store_decided_ahead_total", JSON: "engine.decided_ahead",
		Help: "Calls decided by units that were taken ahead, without asking the engine.", Value: n.DecidedAhead})
	for _, of := range []struct {
		what  string
		units int64
	}{{"taken", n.UnitsTaken}, {"given_back", n.UnitsGivenBack}, {"ended", n.UnitsEnded}} {
		l.Counter(Metric{Field: "store_units_" + of.what, Name: "celld_store_units_total", Labels: []string{"what", of.what},
			Help: "Units that were taken ahead, given back, or ended unused.", Value: of.units})
	}
	l.Counter(Metric{Field: "store_decided_without", Name: "celld_store_decided_without_total", JSON: "engine.decided_without",
		Help:  "Calls that store-failure decided by allow, deny or local.",
		Value: n.DecidedWithout})
	l.Counter(Metric{Field: "store_refused", Name: "celld_store_refused_total", JSON: "engine.refused",
		Help: "Calls on limits that got STOREDOWN, because store-failure is error.", Value: n.Refused})
}
