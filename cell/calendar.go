package cell

import (
	"fmt"
	"strconv"
	"time"
)

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

// edge is when the window of a month or a year begins that a time of a wall clock is in, or so many later, in s. That of a month begins so
// many s after the month, or on its last day where the month is shorter.
func (u unit) edge(wall int64, later int, from int64) int64 {
	at := time.Unix(wall, 0).UTC()
	if u == unitYear {
		return time.Date(at.Year()+later, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	begin := func(later int) int64 {
		first := time.Date(at.Year(), at.Month()+time.Month(later), 1, 0, 0, 0, 0, time.UTC)
		days := int64(first.AddDate(0, 1, -1).Day())
		return first.Unix() + min(from/86_400, days-1)*86_400 + from%86_400
	}
	if begin(0) > wall {
		later--
	}
	return begin(later)
}

// weekdays are as from= names them.
var weekdays = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

const minutesPerDay = 24 * 60

// appendFrom appends so many minutes as a limit has them, the shortest way: wed/04:00, 15, 04:00.
func (u unit) appendFrom(b []byte, from uint16) []byte {
	day, minute := from/minutesPerDay, from%minutesPerDay
	if day > 0 && u == unitWeek {
		b = append(b, weekdays[day]...)
	} else if day > 0 {
		b = strconv.AppendInt(b, int64(day)+1, 10)
	}
	if day > 0 && minute > 0 {
		b = append(b, '/')
	}
	if minute > 0 {
		b = fmt.Appendf(b, "%02d:%02d", minute/60, minute%60)
	}
	return b
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
