package cell

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// LimitError says which part of a literal is wrong, and what was expected.
type LimitError struct{ Part, Text, Want string }

func (e *LimitError) Error() string {
	return "invalid limit: " + e.Part + " '" + e.Text + "': " + e.Want
}

// ParseLimit reads a limit:
//
//	count "/" period *("," option)
//	period = [n] us|ms|s|m|h|d, or second minute hour day week month year (the calendar's, algo=window)
//	option = algo=gcra|window|slide|log|conc, gcra by default
//	         burst=n            gcra: the most at one instant; count by default
//	         warmup=dur         gcra, burst=1 is implied: the rate begins low after a rest, and rises for that long
//	         cold=f             with warmup: how many times longer the interval is then; 3 by default
//	         align=clock        window: from multiples of the period; from the first hit by default
//	         from=hh:mm         day, week, month: when it begins; also mon|tue|…[/hh:mm] with week, 1..31[/hh:mm] with month
//	         tz=±hh:mm|name     window: the zone of the clock or the calendar; UTC by default. A name, as Europe/Berlin: for whole days
//	         buckets=n          slide: n sub-windows; two windows, the one before weighted, by default
//	         name=word          of 1 to 32 letters, digits, _ and -: limits with other names are other limits, and may have another cost
//	         block=[n]unit      after a denial the key stays denied that long
//	         block-at=full      with block: after the call that takes the last of the limit, which passes; denied by default
//	         shadow             evaluated, never limits
//
// The error is a *LimitError. Each option may stand once, in any order.
func ParseLimit(text string) (Limit, error) {
	p := limitParser{}
	err := p.parse(text)
	if err != nil {
		p.Limit = Limit{}
	}
	return p.Limit, err
}

type limitParser struct {
	Limit
	seen     []string // options
	problem  string   // of the last
	zone     string
	warmupMS int64
}

func (p *limitParser) has(option string) bool { return slices.Contains(p.seen, option) }

func wrong(part, text, want string) error { return &LimitError{part, shorten(text), want} }

// shorten keeps an error to one short line, whatever was sent.
func shorten(text string) string {
	if len(text) > 64 {
		text = strings.ToValidUTF8(text[:64], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

func (p *limitParser) parse(text string) error {
	head, options, more := strings.Cut(text, ",")
	count, period, found := strings.Cut(head, "/")
	if !found {
		return wrong("limit", text, "expected count/period, such as 100/1m")
	}
	var ok bool
	if p.Count, ok = parseNumber(count, 1, MaxCost); !ok {
		return wrong("count", count, "expected 1 to "+strconv.Itoa(MaxCost))
	}
	if err := p.parsePeriod(period); err != nil {
		return err
	}
	for more {
		var option string
		option, options, more = strings.Cut(options, ",")
		if err := p.parseOption(option); err != nil {
			return err
		}
	}
	return p.check(count)
}

func (p *limitParser) parsePeriod(text string) error {
	if at := slices.Index(unitNames[:], text); at > int(noUnit) {
		p.Unit, p.Algo = unit(at), Window
		p.PeriodNS = p.Unit.shortestNS()
		return nil
	}
	var what string
	if p.PeriodNS, what = parseDuration(text, minPeriodNS, MaxPeriodNS); what == unknownUnit {
		what += ", such as 1m, or second, minute, hour, day, week, month or year"
	}
	if what != "" {
		return wrong("period", text, what)
	}
	return nil
}

// option is what may follow the period.
type option struct {
	name string
	algo string // with which it may stand; "": each
	want string // what is expected, unless read says it
	read func(p *limitParser, value string) (ok bool)
}

const (
	anyZone = "expected ±hh:mm, from -12:00 to +14:00, or a zone such as Europe/Berlin"
)

var options = []option{
	{"algo", "", "", (*limitParser).readAlgo},
	{"burst", "gcra", "expected 1 to 2147483647", func(p *limitParser, value string) (ok bool) {
		p.Burst, ok = parseNumber(value, 1, maxCount)
		return ok
	}},
	{"warmup", "gcra", "expected 1ms to 24d, in whole ms", func(p *limitParser, value string) bool {
		ns, problem := parseDuration(value, nsPerMS, maxWarmupNS)
		p.warmupMS = ns / nsPerMS
		return problem == "" && ns%nsPerMS == 0
	}},
	{"cold", "gcra", "expected 1.01 to 100, with 2 decimals at most", func(p *limitParser, value string) (ok bool) {
		p.Cold, ok = parseCold(value)
		return ok
	}},
	{"align", "window", "expected clock", func(p *limitParser, value string) bool {
		p.Clock = value == "clock"
		return p.Clock
	}},
	{"from", "window", "expected hh:mm, with week also a day, such as wed/04:00, and with month also one of 1 to 31, such as 15/04:00",
		func(p *limitParser, value string) (ok bool) {
			if p.Unit != unitDay && p.Unit != unitWeek && p.Unit != unitMonth {
				p.problem = "needs day, week or month, such as 100/day"
				return false
			}
			p.From, ok = parseFrom(p.Unit, value)
			return ok
		}},
	{"tz", "window", anyZone, func(p *limitParser, value string) (ok bool) {
		p.zone = value
		p.Zone, ok = parseZone(value)
		return ok
	}},
	{"buckets", "slide", "expected 2 to 128", func(p *limitParser, value string) bool {
		n, ok := parseNumber(value, 2, maxBuckets)
		p.Buckets = uint8(n)
		return ok
	}},
	{"name", "", "expected 1 to 32 letters, digits, _ or -", func(p *limitParser, value string) (ok bool) {
		p.Name, ok = ParseName(value)
		return ok
	}},
	{"block", "", "", func(p *limitParser, value string) bool {
		p.BlockNS, p.problem = parseDuration(value, minPeriodNS, MaxPeriodNS)
		return p.problem == ""
	}},
	{"block-at", "", "expected denied or full", func(p *limitParser, value string) bool {
		p.BlockAtFull = value == "full"
		return p.BlockAtFull || value == "denied"
	}},
	{"shadow", "", "", func(p *limitParser, _ string) bool {
		p.Shadow = true
		return true
	}},
}

func (p *limitParser) parseOption(text string) error {
	name, value, given := strings.Cut(text, "=")
	at := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	switch {
	case text == "":
		return wrong("option", text, "nothing follows a comma; several limits stand apart by blanks")
	case at < 0:
		return wrong("option", text, "expected "+optionNames())
	case p.has(name):
		return wrong("option", text, name+" is given twice")
	case given && name == "shadow":
		return wrong("option", text, "shadow takes no value")
	}
	p.seen = append(p.seen, name)
	if o := options[at]; !o.read(p, value) {
		return wrong(name, value, cmp.Or(p.problem, o.want))
	}
	return nil
}

func (p *limitParser) readAlgo(value string) bool {
	at := slices.IndexFunc(algorithms, func(k kind) bool { return k.name == value })
	if at < 0 || Algo(at) == Warmup {
		p.problem = "expected " + AlgoNames(func(Algo) bool { return true })
		return false
	}
	if p.Algo = Algo(at); p.Unit != noUnit && p.Algo != Window {
		p.problem = "a period of the calendar needs algo=window"
	}
	return p.problem == ""
}

// AlgoNames names the algorithms of which of is true, as a literal names them: "gcra, window or log". Warmup is an option of gcra.
func AlgoNames(of func(Algo) bool) string {
	var names []string
	for at, k := range algorithms {
		if Algo(at) != Warmup && of(Algo(at)) {
			names = append(names, k.name)
		}
	}
	return oneOf(names)
}

func optionNames() string {
	var names []string
	for _, o := range options {
		names = append(names, o.name)
	}
	return oneOf(names)
}

func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// check checks what depends on more than one part, and fills in what was left out.
func (p *limitParser) check(count string) error {
	for _, o := range options {
		if o.algo != "" && o.algo != p.Algo.String() && p.has(o.name) {
			needs := "needs algo=" + o.algo
			if o.name == "tz" {
				needs = "needs a window of the calendar, such as 100/day, or algo=window,align=clock"
			}
			return wrong("option", o.name, needs)
		}
	}
	if part, text, want := p.conflict(count); part != "" {
		return wrong(part, text, want)
	}
	if p.has("warmup") {
		p.Algo, p.Burst, p.Cold = Warmup, p.warmupMS, cmp.Or(p.Cold, usualCold)
	} else if p.Algo == GCRA {
		p.Burst = cmp.Or(p.Burst, p.Count)
	}
	if !p.prepare() {
		return wrong("burst", strconv.FormatInt(p.Burst, 10), "takes more than 292 years to flow back")
	}
	return nil
}

// conflict finds parts that contradict each other.
func (p *limitParser) conflict(count string) (part, text, want string) {
	warms := p.has("warmup")
	switch {
	case p.Unit != noUnit && p.Clock:
		return "align", "clock", "a period of the calendar is always aligned"
	case p.Zone.named() && (!p.byWall() || p.PeriodNS%nsPerDay != 0):
		return "tz", p.zone, "needs day, week, month or year, or align=clock with a period of whole days"
	case p.has("tz") && !p.byWall():
		return "tz", p.zone, "needs align=clock, or a period of the calendar"
	case p.Count > maxCount && !p.can(large):
		return "count", count, "more than 2147483647 needs algo=window or slide"
	case p.Count > p.PeriodNS/(nsPerSecond/maxPerSecond) && !p.can(large):
		return "count", count, "more than 10000000 a second needs algo=window or slide"
	case warms && p.Burst > 1:
		return "burst", strconv.FormatInt(p.Burst, 10), "with warmup it is 1"
	case p.has("block-at") && p.BlockNS == 0:
		return "option", "block-at", "needs block"
	case p.has("cold") && !warms:
		return "option", "cold", "needs warmup"
	case p.Buckets > 0 && p.PeriodNS/int64(p.Buckets) < minPeriodNS:
		return "buckets", strconv.Itoa(int(p.Buckets)), "each must be 1us or longer"
	}
	return "", "", ""
}

const usualCold = 3_00 // as in Guava, where it cannot be set

// parseCold reads a number of up to two decimals as hundredths.
func parseCold(text string) (hundredths int16, ok bool) {
	whole, part, dot := strings.Cut(text, ".")
	n, ok1 := parseNumber(whole, 1, maxCold/100)
	m, ok2 := int64(0), true
	if dot {
		m, ok2 = parseNumber((part + "0")[:min(2, len(part)+1)], 0, 99)
		ok2 = ok2 && len(part) <= 2 && part != ""
	}
	n = n*100 + m
	return int16(min(n, maxCold)), ok1 && ok2 && 100 < n && n <= maxCold
}

func parseNumber(text string, least, most int64) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil && len(text) <= 18 && least <= int64(n) && int64(n) <= most
}

// span is a unit of time.
type span struct {
	name string
	ns   int64
}

var spans = []span{{"d", 86_400 * nsPerSecond}, {"h", 3_600 * nsPerSecond}, {"m", 60 * nsPerSecond}, {"s", nsPerSecond},
	{"ms", 1_000_000}, {"us", 1_000}}

const unknownUnit = "unknown unit, expected us, ms, s, m, h or d"

// parseDuration returns the duration in ns, or what is wrong with the text.
func parseDuration(text string, least, most int64) (ns int64, what string) {
	name := strings.TrimLeft(text, "0123456789")
	n, ok := int64(1), true
	if digits := strings.TrimSuffix(text, name); digits != "" {
		n, ok = parseNumber(digits, 1, most)
	}
	at := slices.IndexFunc(spans, func(s span) bool { return s.name == name })
	switch {
	case ok && at < 0:
		return 0, unknownUnit
	case !ok || n > most/spans[at].ns || n*spans[at].ns < least:
		return 0, "expected 1us to 366d"
	}
	return n * spans[at].ns, ""
}

// parseFrom reads hh:mm, and for a week or a month also a day, or a day and hh:mm: wed/04:00, 15.
func parseFrom(u unit, text string) (minutes uint16, ok bool) {
	day, clock, both := strings.Cut(text, "/")
	if !both && strings.Contains(text, ":") {
		day, clock = "", text
	}
	days, m, ok := int64(0), int64(0), true
	switch {
	case day == "" && !both:
		ok = clock != ""
	case u == unitWeek:
		days = int64(slices.Index(weekdays[:], day))
		ok = ok && days >= 0
	case u == unitMonth:
		n, is := parseNumber(day, 1, 31)
		days, ok = n-1, ok && is
	default:
		ok = false
	}
	if clock != "" || both {
		hours, minutes, _ := strings.Cut(clock, ":")
		h, isH := parseNumber(hours, 0, 23)
		min, isM := parseNumber(minutes, 0, 59)
		m, ok = h*60+min, ok && isH && isM && len(clock) == len("hh:mm")
	}
	return uint16(days*minutesPerDay + m), ok
}

func parseZone(text string) (z zone, ok bool) {
	if text == "" || text[0] != '+' && text[0] != '-' {
		return zoneNamed(text)
	}
	if len(text) != len("+hh:mm") || text[3] != ':' {
		return 0, false
	}
	h, ok1 := parseNumber(text[1:3], 0, 14)
	m, ok2 := parseNumber(text[4:6], 0, 59)
	z = zone(h*60 + m)
	if text[0] == '-' {
		z = -z
	}
	return z, ok1 && ok2 && -12*60 <= z && z <= 14*60
}

// String is the literal in its canonical form. ParseLimit reads it as the same limit.
func (l Limit) String() string { return string(l.AppendText(nil)) }

// AppendText appends the canonical form.
func (l *Limit) AppendText(b []byte) []byte {
	b = append(strconv.AppendInt(b, l.Count, 10), '/')
	b = l.Shape.appendPeriod(b)
	switch {
	case l.Algo == Warmup:
		b = appendDuration(append(b, ",burst=1,warmup="...), l.warmupNS())
	case l.Algo == GCRA && l.Burst != l.Count:
		b = strconv.AppendInt(append(b, ",burst="...), l.Burst, 10)
	case l.Algo != GCRA && l.Unit == noUnit:
		b = append(append(b, ",algo="...), l.Algo.String()...)
	}
	b = l.Shape.appendOptions(b)
	if l.BlockNS > 0 {
		b = appendDuration(append(b, ",block="...), l.BlockNS)
	}
	if l.BlockAtFull {
		b = append(b, ",block-at=full"...)
	}
	if l.Shadow {
		b = append(b, ",shadow"...)
	}
	return b
}

// AppendText appends the shape as tools see it: gcra/1m, slide/1m,buckets=6, window/month,tz=+08:00.
func (s Shape) AppendText(b []byte) []byte {
	b = append(append(b, s.Algo.String()...), '/')
	return s.appendOptions(s.appendPeriod(b))
}

func (s Shape) appendPeriod(b []byte) []byte {
	if s.Unit != noUnit {
		return append(b, s.Unit.String()...)
	}
	return appendDuration(b, s.PeriodNS)
}

func (s Shape) appendOptions(b []byte) []byte {
	if s.Clock {
		b = append(b, ",align=clock"...)
	}
	if s.From != 0 {
		b = s.Unit.appendFrom(append(b, ",from="...), s.From)
	}
	if s.Zone != 0 {
		b = s.Zone.appendText(append(b, ",tz="...))
	}
	if s.Cold != 0 && s.Cold != usualCold {
		b = strconv.AppendFloat(append(b, ",cold="...), float64(s.Cold)/100, 'f', -1, 64)
	}
	if s.Buckets > 0 {
		b = strconv.AppendInt(append(b, ",buckets="...), int64(s.Buckets), 10)
	}
	if s.Name != (Name{}) {
		b = append(append(b, ",name="...), s.Name.String()...)
	}
	return b
}

// appendDuration uses the largest unit that divides it.
func appendDuration(b []byte, ns int64) []byte {
	for _, span := range spans {
		if ns%span.ns == 0 {
			return append(strconv.AppendInt(b, ns/span.ns, 10), span.name...)
		}
	}
	return b
}
