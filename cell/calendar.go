package cell

import "time"

// Unit is the calendar's window, or Span for one that is a length of time.
type Unit uint8

const (
	Span Unit = iota
	Second
	Minute
	Hour
	Day
	Week // from Monday
	Month
	Year
)

var unitNames = [...]string{Span: "", Second: "second", Minute: "minute", Hour: "hour", Day: "day", Week: "week", Month: "month",
	Year: "year"}

func (u Unit) String() string { return unitNames[u] }

// shortestNS is the length of the shortest window of a unit.
func (u Unit) shortestNS() int64 {
	const day = 86_400 * nsPerSecond
	return [...]int64{Second: nsPerSecond, Minute: 60 * nsPerSecond, Hour: 3_600 * nsPerSecond, Day: day, Week: 7 * day, Month: 28 * day,
		Year: 365 * day}[u]
}

// edge is the first instant of the month or year that an instant is in, or of one that is so many later, in the time of the zone. A zone
// here is an offset: no hour is left out or comes twice.
func (u Unit) edge(ns int64, later int) int64 {
	at := time.Unix(0, ns).UTC()
	if u == Year {
		return time.Date(at.Year()+later, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	return time.Date(at.Year(), at.Month()+time.Month(later), 1, 0, 0, 0, 0, time.UTC).UnixNano()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
