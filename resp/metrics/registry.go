package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Section is a part of INFO, and the metrics beside it that INFO does not have.
type Section struct {
	Name      string // "": INFO has nothing of it
	ByDefault bool   // part of INFO without arguments
	Counts    bool   // CONFIG RESETSTAT resets counters of it
	Read      func(*List)
}

// Registry is all sections, in INFO's order. Any goroutine may read it.
type Registry struct {
	sections []Section
	baseline atomic.Pointer[map[string]int64] // of counters by their fields; nil: Reset has not been called
}

// New returns a Registry.
func New(sections ...Section) *Registry { return &Registry{sections: sections} }

// Read reads all metrics, and those of others beside them.
func (r *Registry) Read(nowNS int64, others ...func(*List)) []Metric {
	l := List{NowNS: nowNS}
	for _, section := range r.sections {
		section.Read(&l)
		l.InfoOnly = false
	}
	for _, read := range others {
		read(&l)
	}
	return l.metrics
}

// Reset sets the counters of INFO to 0. Names for Prometheus and the page go on, as their readers must not see a counter fall.
func (r *Registry) Reset(nowNS int64) {
	baseline := map[string]int64{}
	for _, section := range r.sections {
		if !section.Counts { // to read all takes ten times as long
			continue
		}
		l := List{NowNS: nowNS, metrics: make([]Metric, 0, mostOfSection)}
		section.Read(&l)
		for i := range l.metrics {
			if n, ok := l.metrics[i].Value.(int64); ok && l.metrics[i].resets() {
				baseline[l.metrics[i].Field] = n
			}
		}
	}
	r.baseline.Store(&baseline)
}

func (m *Metric) resets() bool { return m.Kind == "counter" && !m.Lasts && m.Field != "" }

// mostOfSection is how many metrics a section of INFO has, about.
const mostOfSection = 64

// Info returns the sections that words name: by a section's name in lower case, or as default, all and everything.
// Without words it returns those by default.
func (r *Registry) Info(nowNS int64, words ...string) string {
	named := func(word string) bool { return slices.Contains(words, word) }
	all, byDefault := named("all") || named("everything"), len(words) == 0 || named("default")
	baseline := r.baseline.Load() // before the counters, which only grow
	var b strings.Builder
	l := List{NowNS: nowNS, ForInfo: true, metrics: make([]Metric, 0, mostOfSection)}
	for _, section := range r.sections {
		if section.Name == "" || !all && !(byDefault && section.ByDefault) && !named(strings.ToLower(section.Name)) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n", section.Name)
		l.metrics, l.InfoOnly = l.metrics[:0], false
		section.Read(&l)
		for i := range l.metrics {
			m := &l.metrics[i]
			if n, ok := m.Value.(int64); ok && baseline != nil && m.resets() {
				m.Value = n - (*baseline)[m.Field]
			}
			if m.Field != "" {
				b.WriteString(m.Field)
				b.WriteByte(':')
				b.WriteString(m.text())
				b.WriteString("\r\n")
			}
		}
	}
	return b.String()
}
