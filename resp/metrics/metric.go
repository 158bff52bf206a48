package metrics

import (
	"fmt"
	"strconv"
	"time"

	"celld/store/memory"
)

// Metric is one value and what it is called. A rendering leaves out a metric that has no name in it.
type Metric struct {
	Field  string   // of INFO
	Name   string   // for Prometheus
	JSON   string   // on the live page: the names that lead to it, separated by dots
	Help   string   // a sentence, for Prometheus and docs
	Labels []string // for Prometheus: a name, its value, and so on

	// Value is a number, a text for INFO, or one of those that each rendering writes in its own unit:
	//
	//	bool           1 or 0, on the page true or false
	//	Failed         as bool, but ok or err in INFO
	//	time.Time      Unix seconds, on the page milliseconds; 0 for the zero Time
	//	time.Duration  seconds, on the page milliseconds; below 0, INFO has -1
	//	*Histogram     for Prometheus; the page has the count
	Value any

	Kind  string // gauge, counter or histogram, as List's method says
	Lasts bool   // a counter that CONFIG RESETSTAT leaves
}

// Failed says that the last attempt did not succeed.
type Failed bool

// List gathers what sections read.
type List struct {
	NowNS    int64 // the limit time of the reading
	InfoOnly bool  // what is added has a name in INFO only
	ForInfo  bool  // INFO reads it, which has no histograms

	metrics []Metric
	keys    *memory.Stats
}

// Gauge adds a value that may rise and fall.
func (l *List) Gauge(m Metric) { l.add(m, "gauge") }

// Counter adds a number that only grows.
func (l *List) Counter(m Metric) { l.add(m, "counter") }

// Histogram adds a *Histogram.
func (l *List) Histogram(m Metric) { l.add(m, "histogram") }

// Field adds a value that INFO alone has.
func (l *List) Field(name string, value any) { l.add(Metric{Field: name, Value: value}, "gauge") }

func (l *List) add(m Metric, kind string) {
	if m.Kind = kind; l.InfoOnly {
		m.Name, m.JSON = "", ""
	}
	l.metrics = append(l.metrics, m)
}

// Keys returns the counts of a store. It reads them once, as that takes 1 ms with a million keys.
func (l *List) Keys(s interface {
	Stats(nowNS int64) memory.Stats
}) *memory.Stats {
	if l.keys == nil {
		st := s.Stats(l.NowNS)
		l.keys = &st
	}
	return l.keys
}

// text is the value in INFO.
func (m *Metric) text() string {
	switch v := m.Value.(type) {
	case string:
		return v
	case int64: // as fmt writes it, for a third of the time
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case Failed:
		if v {
			return "err"
		}
		return "ok"
	case time.Duration:
		if v < 0 {
			return "-1"
		}
	case bool, time.Time:
	default:
		return fmt.Sprint(v)
	}
	return strconv.FormatInt(int64(m.number()), 10)
}

// number is the value for Prometheus.
func (m *Metric) number() float64 {
	switch v := m.Value.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	case Failed:
		if v {
			return 1
		}
	case time.Time:
		if !v.IsZero() {
			return float64(v.Unix()) + float64(v.Nanosecond())/1e9
		}
	case time.Duration:
		return float64(max(v, 0)) / 1e9
	}
	return 0
}

// Histogram says how many took how long.
type Histogram struct {
	MostNS []int64  // upper bounds
	Below  []uint64 // how many took that long at most
	Count  uint64
	SumNS  int64
}

// NewHistogram returns one of n bounds, each four times the one before.
func NewHistogram(firstNS int64, n int) *Histogram {
	h := &Histogram{MostNS: make([]int64, n), Below: make([]uint64, n)}
	for i := range h.MostNS {
		h.MostNS[i] = firstNS << (2 * i)
	}
	return h
}
