package resp

import (
	"celld/resp/command"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func infoCPU(w *infoWriter, _ *Session) {
	user, system, ok := cpuTime()
	if !ok {
		return
	}
	w.field("used_cpu_sys", fmt.Sprintf("%.6f", float64(system)/1e9))
	w.field("used_cpu_user", fmt.Sprintf("%.6f", float64(user)/1e9))
	w.field("used_cpu_sys_children", "0.000000") // nothing is forked
	w.field("used_cpu_user_children", "0.000000")
}

func infoErrorStats(w *infoWriter, s *Session) {
	words := s.srv.stats.errors.read()
	for _, word := range slices.Sorted(maps.Keys(words)) {
		w.field("errorstat_"+word, fmt.Sprintf("count=%d", words[word].Load()))
	}
}

// infoLatencyStats shows the durations of Redis's default percentiles. A fast command counts with the mean of its batch, which is
// its own duration where it was alone in the batch.
func infoLatencyStats(w *infoWriter, s *Session) {
	s.srv.commands.Each(func(row *command.Row) {
		_, _, r := statsOf(row).read()
		if r == nil {
			return
		}
		var fields []string
		for _, p := range []float64{50, 99, 99.9} {
			fields = append(fields, fmt.Sprintf("p%v=%.3f", p, float64(r.percentile(p))/1e3))
		}
		w.field("latency_percentiles_usec_"+row.FullName(), strings.Join(fields, ","))
	})
}

func infoCluster(w *infoWriter, _ *Session) { w.field("cluster_enabled", 0) }
