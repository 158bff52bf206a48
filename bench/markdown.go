//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// column is one of a table: a figure, how it is written, and whether celld's ratio to it stands behind it.
type column struct {
	title  string
	metric metric
	spread bool // with the least and the most of the rounds
	ratio  bool
}

var (
	driveColumns = []column{
		{"CPU µs/command", cpuMicroseconds, true, true}, {"commands/s", perSecond, false, false}, {"p50 ms", p50, false, false},
		{"p99 ms", p99, true, true}, {"p99.9 ms", p999, false, false}, {"RSS MB", rssMB, false, false},
	}
	envoyColumns = append(slices.Clip(driveColumns), column{"fresh process MB", freshMB, true, true})
	aofColumns   = []column{
		{"CPU µs/command", cpuMicroseconds, true, true}, {"commands/s", perSecond, true, true}, {"p50 ms", p50, false, false},
		{"p99 ms", p99, false, false}, {"bytes written/command", bytesWritten, false, false},
	}
	saveColumns = []column{
		{"save s", saveSeconds, true, true}, {"load s", loadSeconds, true, true}, {"file MB", fileMB, false, false},
		{"memory MB", memoryMB, false, false}, {"peak/before", peakRatio, false, false}, {"at rest longest ms", restLongest, false, false},
		{"BGSAVE p99.9 ms", bgsaveP999, false, false}, {"longest ms", bgsaveLongest, true, false},
		{"BGREWRITEAOF p99.9 ms", rewriteP999, false, false}, {"longest ms", rewriteLongest, true, false},
	}
	fillColumns = []column{
		{"RSS MB", rssMB, true, true}, {"bytes/key", bytesPerKey, false, true}, {"once gone", bytesPerKeyGone, false, false},
		{"gone after s", goneSeconds, false, false},
		{"growing p99.9 ms", growP999, false, false}, {"longest ms", growLongest, true, false},
		{"expiring p99.9 ms", expireP999, false, false}, {"longest ms", expireLongest, true, false},
	}
	idleColumns = []column{
		{"KB/connection", kbPerConnection, true, true}, {"that never asked", kbPerSilent, true, true}, {"RSS MB", rssMB, false, false},
		{"fresh process MB", freshMB, true, true},
	}
	coreColumns = []column{
		{"one goroutine, ns", oneNS, true, true}, {"two, one store, ns", twoNS, true, true},
		{"two, two stores, ns", ceilingNS, true, false}, {"share of the ceiling", shareOfCeiling, true, false},
		{"two × one", twoOverOne, false, false},
	}
	waitingColumns = []column{
		{"p99 late, ms", lateP99, true, false}, {"longest", lateLongest, false, false}, {"permits/s", perSecond, false, false},
		{"% off", rateOff, true, false}, {"CPU µs/answer", cpuMicroseconds, true, false},
	}
	engineColumns = []column{
		{"engine CPU µs/decision", engineCPU, true, true}, {"decisions/s", perSecond, false, false}, {"p50 ms", p50, true, true},
		{"p99 ms", p99, true, true}, {"celld CPU µs", cpuMicroseconds, false, false}, {"callers' CPU µs", callersCPU, false, false},
		{"allowed/permitted", allowedShare, true, false}, {"commands/decision", engineAsked, true, false},
	}
	addedColumns = []column{
		{"p50 ms", p50, true, false}, {"the engine alone", directP50, false, false}, {"added", addedP50, true, false},
		{"p99 ms", p99, true, false}, {"the engine alone", directP99, false, false}, {"added", addedP99, true, false},
	}
	freshColumns = []column{
		{"hit, ns", oneNS, true, false}, {"growing, ns", growingNS, true, true}, {"× hit", growingOverHit, true, false},
		{"flood, ns", floodNS, true, true}, {"× hit", floodOverHit, true, false},
	}
)

func (r *report) markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "Measured %s by `%s` on %s, %d CPUs, Linux %s, %s; files on %s.\n\n", r.Date, r.Command, m.CPU, m.CPUs,
		m.Kernel, m.OS, m.Disk)
	for _, p := range r.order {
		fmt.Fprintf(&b, "- %s: %s\n", p.title, r.Peers[p.name])
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(&b, "- left out: %s\n", missing)
	}
	b.WriteString("\nMedians; least–most of the rounds in parentheses. \"× celld\" is the peer's figure over celld's.\n\n")
	r.table(&b, "work", driveColumns, func(w work) bool { d, ok := w.(drive); return ok && !d.persists() })
	r.table(&b, "checks", driveColumns, func(w work) bool { _, ok := w.(checks); return ok })
	r.table(&b, "Envoy's rate limit service", envoyColumns, func(w work) bool { _, ok := w.(rateLimits); return ok })
	r.table(&b, "keys", fillColumns, func(w work) bool { _, ok := w.(fill); return ok })
	r.table(&b, "connections", idleColumns, func(w work) bool { _, ok := w.(idle); return ok })
	r.table(&b, "append-only file", aofColumns, func(w work) bool { d, ok := w.(drive); return ok && d.persists() })
	r.table(&b, "files of", saveColumns, func(w work) bool { _, ok := w.(save); return ok })
	r.table(&b, "every core", coreColumns, func(w work) bool { c, ok := w.(cores); return ok && !c.fresh })
	r.table(&b, "new keys", freshColumns, func(w work) bool { c, ok := w.(cores); return ok && c.fresh })
	r.table(&b, "waiting", waitingColumns, func(w work) bool { _, ok := w.(waiting); return ok })
	r.table(&b, "limits on an engine", engineColumns, func(w work) bool { _, ok := w.(onEngine); return ok })
	r.table(&b, "added to the engine's latency", addedColumns, func(w work) bool { _, ok := w.(added); return ok })
	r.goalTable(&b)
	return strings.TrimSpace(b.String()) + "\n"
}

func (r *report) table(b *strings.Builder, first string, columns []column, belongs func(work) bool) {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row *rowReport) bool { return !belongs(row.work) })
	if len(rows) == 0 {
		return
	}
	header := []string{first, "server"}
	for _, c := range columns {
		if header = append(header, c.title); c.ratio {
			header = append(header, "× celld")
		}
	}
	line(b, header)
	line(b, slices.Repeat([]string{"---"}, len(header)))
	for _, row := range rows {
		title := row.Title
		for _, p := range r.order {
			if failure, ok := row.Failed[p.name]; ok {
				why, _, _ := strings.Cut(failure, "\n")
				line(b, append([]string{title, p.title, "failed: " + strings.ReplaceAll(why, "|", "/")},
					slices.Repeat([]string{""}, len(header)-3)...))
			} else if figures, ok := row.Peers[p.name]; ok {
				line(b, append([]string{title, p.title}, cells(columns, figures, row.Peers["celld"])...))
			} else {
				continue
			}
			title = ""
		}
	}
	b.WriteString("\n")
}

// cells are the figures of one peer beside celld's.
func cells(columns []column, figures, own map[metric]spread) (cells []string) {
	for _, c := range columns {
		figure, ok := figures[c.metric]
		text := ""
		if ok {
			text = number(figure.Median)
			if c.spread && len(figure.Rounds) > 1 {
				text += fmt.Sprintf(" (%s–%s)", number(figure.Min), number(figure.Max))
			}
		}
		if cells = append(cells, text); !c.ratio {
			continue
		}
		base, known := own[c.metric]
		if ok && known && base.Median > 0 {
			cells = append(cells, fmt.Sprintf("%.2f", figure.Median/base.Median))
		} else {
			cells = append(cells, "")
		}
	}
	return cells
}

func (r *report) goalTable(b *strings.Builder) {
	if len(r.Goals) == 0 {
		return
	}
	line(b, []string{"work", "goal", "measured", ""})
	line(b, slices.Repeat([]string{"---"}, 4))
	for _, o := range r.Goals {
		measured := "–"
		if o.Measured != nil {
			measured = number(*o.Measured)
		}
		line(b, []string{rowTitle(o.Row), o.Goal, measured, o.verdict()})
	}
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func rowTitle(name string) string {
	for _, r := range allRows {
		if r.name == name {
			return r.title
		}
	}
	return name
}
