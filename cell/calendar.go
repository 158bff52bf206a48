package cell

import "time"

// unit is a window of the calendar; noUnit: the period is a length of time.
type unit uint8

const (
	noUnit unit = iota
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek // from Monday
	unitMonth
	unitYear
)

var unitNames = [...]string{noUnit: "", unitSecond: "second", unitMinute: "minute", unitHour: "hour", unitDay: "day", unitWeek: "week",
	unitMonth: "month", unitYear: "year"}

func (u unit) String() string { return unitNames[u] }

// shortestNS is the length of the shortest window of a unit.
func (u unit) shortestNS() int64 {
	const day = 86_400 * nsPerSecond
	return [...]int64{unitSecond: nsPerSecond, unitMinute: 60 * nsPerSecond, unitHour: 3_600 * nsPerSecond, unitDay: day, unitWeek: 7 * day,
		unitMonth: 28 * day, unitYear: 365 * day}[u]
}

// edge is the first instant of a month or year, in the time of the zone: the one that ns is in, or so many later. A zone here is an offset:
// no hour is left out or comes twice.
func (u unit) edge(ns int64, later int) int64 {
	at := time.Unix(0, ns).UTC()
	if u == unitYear {
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
