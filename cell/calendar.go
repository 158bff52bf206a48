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
	return [...]int64{unitSecond: nsPerSecond, unitMinute: 60 * nsPerSecond, unitHour: 3_600 * nsPerSecond, unitDay: nsPerDay,
		unitWeek: 7 * nsPerDay, unitMonth: 28 * nsPerDay, unitYear: 365 * nsPerDay}[u]
}

// firstMonday is when the first week began, in s since 1970 began, which was a Thursday.
const firstMonday = 4 * 86_400

// edge is when a month or year begins that a time of a wall clock is in, or so many later, in s.
func (u unit) edge(wall int64, later int) int64 {
	at := time.Unix(wall, 0).UTC()
	if u == unitYear {
		return time.Date(at.Year()+later, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return time.Date(at.Year(), at.Month()+time.Month(later), 1, 0, 0, 0, 0, time.UTC).Unix()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
