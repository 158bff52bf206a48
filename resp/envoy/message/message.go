package message

import (
	"strconv"
	"strings"
	"time"
)

// The bounds of a request. An empty entry has 2 bytes on the wire and 32 in memory.
const (
	mostDescriptors = 1000
	mostEntries     = 5000 // of all descriptors
)

// Request asks whether a call passes, for each of its descriptors.
type Request struct {
	Domain      string
	Descriptors []Descriptor
	Hits        uint32 // of each descriptor without its own; 0 means 1
}

// Descriptor is what a call is counted by.
type Descriptor struct {
	Entries  []Entry
	Limit    *Limit  // in place of the configured one; without a name
	Hits     *uint64 // nil: those of the request; 0: it only looks
	Negative bool    // the hits are given back
}

// Entry is a part of a descriptor.
type Entry struct{ Key, Value string }

// Limit is so many requests a unit. The zero value is a limit of an unknown unit.
type Limit struct {
	Requests uint32
	Unit     Unit
	Name     string
}

// Unit is a period by its number in the messages. Unknown and those that are not listed have no length.
type Unit int32

// The units. The numbers are those of RateLimitResponse.RateLimit.Unit.
const (
	Unknown Unit = iota
	Second
	Minute
	Hour
	Day
	Month // 30 days
	Year  // 365 days
	Week
)

const day = 24 * time.Hour

// units are the names of all units, and their lengths.
var units = [...]struct {
	name   string
	period time.Duration
}{
	Unknown: {"UNKNOWN", 0}, Second: {"SECOND", time.Second}, Minute: {"MINUTE", time.Minute}, Hour: {"HOUR", time.Hour},
	Day: {"DAY", day}, Week: {"WEEK", 7 * day}, Month: {"MONTH", 30 * day}, Year: {"YEAR", 365 * day},
}

// String is the unit's name in the messages, or its number.
func (u Unit) String() string {
	if u < 0 || int(u) >= len(units) {
		return strconv.Itoa(int(u))
	}
	return units[u].name
}

// Period is how long a unit lasts; 0: it is not known.
func (u Unit) Period() time.Duration {
	if u < 0 || int(u) >= len(units) {
		return 0
	}
	return units[u].period
}

// UnitNamed finds a unit by its name in upper or lower case. It returns Unknown for any other name.
func UnitNamed(name string) Unit {
	name = strings.ToUpper(name) // strings.EqualFold takes the sign of Kelvin for a k
	for u := range units {
		if name == units[u].name {
			return Unit(u)
		}
	}
	return Unknown
}

// UnitLasting is the unit of a period, or Unknown.
func UnitLasting(period time.Duration) Unit {
	for u := range units {
		if units[u].period == period {
			return Unit(u)
		}
	}
	return Unknown
}

// Code says whether a call passes.
type Code int32

// The codes. The numbers are those of RateLimitResponse.Code, of which UNKNOWN is never sent.
const (
	OK   Code = 1
	Over Code = 2
)

func (c Code) String() string {
	if c == Over {
		return "OVER_LIMIT"
	}
	return "OK"
}

// Response answers a Request.
type Response struct {
	Code     Code
	Statuses []Status       // of the descriptors, in their order
	Headers  []Header       // for the answer to the call
	Metadata map[string]any // for Envoy's filters and logs; its values are those that JSON has. nil: none
}

// Status is the answer for a descriptor.
type Status struct {
	Code      Code
	Limit     *Limit // nil: none holds
	Remaining uint32 // in this window
	Reset     int64  // seconds to its end; 0 without a limit
}

// Header is a header by name and value.
type Header struct{ Name, Value string }
