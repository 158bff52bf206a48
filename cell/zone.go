package cell

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // the database for machines and images that have none: 414 KB of the binary
)

// zone is what the clocks of a window show: minutes east of UTC, or, from firstNamed on, the number of a zone of the IANA database.
type zone int16

const firstNamed zone = 1000 // more minutes than +14:00

// mostNamed is a bound in case a file system has more names for a zone than one. The database has 600.
const mostNamed = 1000

// namedZones are the zones that limits have named, by number. They are never forgotten: 600 take 760 KB. A number holds for this process
// only, so texts have the name. Each new zone makes a new list: those who decide take no lock.
var namedZones struct {
	parsing sync.Mutex
	list    atomic.Pointer[[]*time.Location]
}

func (z zone) named() bool { return z >= firstNamed }

func (z zone) location() *time.Location { return (*namedZones.list.Load())[z-firstNamed] }

// isZoneName refuses names that time.LoadLocation might find though the database does not have them: Local, what machines keep beside
// the zones (posix/, right/, localtime), and a second way to write a path. Else the names of one zone would have no end.
func isZoneName(name string) bool {
	return name != "" && 'A' <= name[0] && name[0] <= 'Z' && len(name) <= 64 && name != "Local" && fs.ValidPath(name) &&
		!strings.Contains(name, `\`)
}

// zoneNamed is a zone of the IANA database: the machine's if it has one.
func zoneNamed(name string) (z zone, ok bool) {
	if name == "UTC" {
		return 0, true
	}
	if !isZoneName(name) {
		return 0, false
	}
	namedZones.parsing.Lock()
	defer namedZones.parsing.Unlock()
	var list []*time.Location
	if p := namedZones.list.Load(); p != nil {
		list = *p
	}
	at := slices.IndexFunc(list, func(l *time.Location) bool { return l.String() == name })
	if at < 0 {
		location, err := time.LoadLocation(strings.Clone(name)) // which keeps it, and not the text that it is part of
		if err != nil || len(list) == mostNamed {
			return 0, false
		}
		at, list = len(list), append(slices.Clip(list), location)
		namedZones.list.Store(&list)
	}
	return firstNamed + zone(at), true
}

func (z zone) appendText(b []byte) []byte {
	if z.named() {
		return append(b, z.location().String()...)
	}
	sign, m := byte('+'), z
	if m < 0 {
		sign, m = '-', -m
	}
	return append(b, sign, byte('0'+m/600), byte('0'+m/60%10), ':', byte('0'+m%60/10), byte('0'+m%10))
}

// wall is what clocks show at an instant, in s, as if they stood in UTC.
func (z zone) wall(sec int64) int64 {
	if !z.named() {
		return sec + int64(z)*60
	}
	_, offset := time.Unix(sec, 0).In(z.location()).Zone()
	return sec + int64(offset)
}

// mostOffset is further east than any zone has ever been, in s.
const mostOffset = 16 * 3_600

// first is the first instant at which clocks show a time or a later one, in s. Where clocks skip the time, that is when they do. Where
// they show it twice, it is the first time.
func (z zone) first(wall int64) int64 {
	if !z.named() {
		return wall - int64(z)*60
	}
	at := time.Unix(wall-mostOffset, 0).In(z.location()) // it shows less then
	for {
		_, offset := at.Zone()
		first := max(wall-int64(offset), at.Unix())
		_, end := at.ZoneBounds()
		// On the last day of a leap year, end may be the day's beginning: package time ends it with the 365th. No clock changes then.
		if end.IsZero() || first < end.Unix() || !end.After(at) {
			return first
		}
		at = end
	}
}
