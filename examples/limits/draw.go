package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The picture is text with numbers in it, so fmt is enough and no drawing library is needed. It has its own background, and a
// dark one for readers who prefer that.

const (
	width      = 960
	left       = 60 // of the plots
	perSecond  = 1.92
	right      = left + perSecond*400
	top        = 186  // of the first limit
	panel      = 128  // from one limit to the next
	lineHeight = 60.0 // of twice the limit
	lineTop    = 26
	stripTop   = 90
	callHeight = 0.9 // of one call in 2 s
	stripBase  = stripTop + 18
	bin        = 2 * time.Second
	height     = top + 7*panel + 34
)

const style = `
text{font-family:-apple-system,BlinkMacSystemFont,"Segoe UI",Helvetica,Arial,sans-serif;font-size:13px;fill:#1f2328}
.title{font-size:22px;font-weight:600}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px;font-weight:600}
.quiet{fill:#59636e}
.small{font-size:11.5px;fill:#59636e}
.end{text-anchor:end}.middle{text-anchor:middle}
.most{font-size:24px;font-weight:600;fill:#1a5fb4}
.most.over{fill:#c01c28}
.paper{fill:#fff;stroke:#d1d9e0}
.minute{stroke:#e3e7ec;fill:none}
.base{stroke:#afb8c1;fill:none}
.limit{stroke:#1f2328;stroke-dasharray:4 3;fill:none}
.under{fill:#d3e4f8}.above{fill:#f4a9ae}
.line{stroke:#1a5fb4;stroke-width:1.6;stroke-linejoin:round;fill:none}
.passed{fill:#1a5fb4}.denied{fill:#ccd3da}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.quiet,.small{fill:#9198a1}
.most{fill:#6cb0ff}.most.over{fill:#ff7b72}
.paper{fill:#0d1117;stroke:#3d444d}
.minute{stroke:#252c35}.base{stroke:#545d68}.limit{stroke:#e6edf3}
.under{fill:#15304f}.above{fill:#8e2f33}
.line{stroke:#6cb0ff}.passed{fill:#6cb0ff}.denied{fill:#3d444d}
}
`

type picture struct{ strings.Builder }

func (p *picture) add(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func draw(cases []limitCase) []byte {
	p := &picture{}
	calls := traffic()
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`,
		width, height, width, height)
	p.add(`<title id="title">The same traffic under seven limits of 60 calls a minute</title>`)
	p.add(`<desc id="desc">%s</desc>`, description(calls, cases))
	p.add("<style>%s</style>", style)
	p.add(`<clipPath id="below"><rect x="%d" y="%s" width="%s" height="%s"/></clipPath>`, left, px(lineTop+lineHeight/2), px(right-left),
		px(lineHeight))
	p.add(`<clipPath id="beyond"><rect x="%d" y="0" width="%s" height="%s"/></clipPath>`, left, px(right-left), px(lineTop+lineHeight/2))
	p.add(`<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="8"/>`, width-1, height-1)
	p.add(`<text class="title" x="24" y="40">The same traffic under seven limits of 60 calls a minute</text>`)
	p.legend()
	p.offered(calls)
	offered := bars(calls)
	for i := range cases {
		p.limit(&cases[i], offered, top+i*panel)
	}
	for minute := 0; minute <= 6; minute++ {
		p.add(`<text class="small middle" x="%s" y="%d">%s</text>`, px(x(int64(minute)*int64(time.Minute))), height-18, clock(minute))
	}
	p.add("</svg>")
	return []byte(p.String())
}

func clock(minute int) string { return fmt.Sprintf("%d:00", minute) }

// description describes the picture for readers who cannot see it.
func description(calls []int64, cases []limitCase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls are offered: half the limit in threes, a burst over a minute’s edge, a flood, and silence between them. The most that each limit admits in any minute:", len(calls))
	for i, c := range cases {
		if i > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " %s %d, of %d in all", c.literal, most(c.admitted, int64(period)), len(c.admitted))
	}
	b.WriteString(".")
	return b.String()
}

func (p *picture) legend() {
	const y = 68
	p.add(`<path class="line" d="M24 %d h22"/><text class="quiet" x="53" y="%d">admitted in the minute before</text>`, y-4, y)
	p.add(`<path class="limit" d="M270 %d h22"/><text class="quiet" x="299" y="%d">the limit</text>`, y-4, y)
	p.add(`<rect class="above" x="382" y="%d" width="22" height="11"/><text class="quiet" x="411" y="%d">beyond it</text>`, y-10, y)
	p.add(`<rect class="passed" x="500" y="%d" width="11" height="11"/><text class="quiet" x="518" y="%d">calls admitted</text>`, y-10, y)
	p.add(`<rect class="denied" x="636" y="%d" width="11" height="11"/><text class="quiet" x="654" y="%d">and denied</text>`, y-10, y)
}

// minutes draws a line at each full minute.
func (p *picture) minutes(from, to float64) {
	var d strings.Builder
	for m := range 7 {
		fmt.Fprintf(&d, "M%s %sV%s", px(x(int64(m)*int64(time.Minute))), px(from), px(to))
	}
	p.add(`<path class="minute" d="%s"/>`, d.String())
}

func (p *picture) offered(calls []int64) {
	const base, scale = 160, 2.4
	p.minutes(112, base)
	for _, ph := range phases {
		if ph.label != "" {
			p.add(`<text class="small middle" x="%s" y="%d">%s</text>`, px(x(int64(ph.labelAt))), 107, ph.label)
		}
	}
	p.add(`<path class="denied" transform="translate(0 %d) scale(1 %v)" d="%s"/>`, base, scale, bars(calls))
	p.add(`<path class="base" d="M%d %dH%s"/>`, left, base, px(right))
	p.add(`<text class="small end" x="%d" y="%d">10/s</text>`, left-8, base-38)
	p.add(`<text class="small end" x="%d" y="%d">0</text>`, left-8, base+2)
	p.add(`<text class="small" x="%s" y="%d">offered</text>`, px(right+16), base-17)
	p.add(`<text class="small" x="%s" y="%d">%d calls</text>`, px(right+16), base-2, len(calls))
}

func (p *picture) limit(c *limitCase, all string, y int) {
	id := fmt.Sprintf("n%d", y)
	peak := most(c.admitted, int64(period))
	p.add(`<g transform="translate(0 %d)">`, y)
	p.minutes(lineTop-8, stripBase)
	p.add(`<text x="%d" y="10"><tspan class="code">%s</tspan><tspan class="quiet" dx="12">%s</tspan></text>`, left, c.literal, c.says)

	p.add(`<defs><path id="%s" d="M%s"/></defs>`, id, counts(c.admitted)) // begins and ends at 0, so that it also draws the area
	p.add(`<use href="#%s" class="under" clip-path="url(#below)"/>`, id)
	if peak > count {
		p.add(`<use href="#%s" class="above" clip-path="url(#beyond)"/>`, id)
	}
	p.add(`<path class="limit" d="M%d %sH%s"/>`, left, px(lineTop+lineHeight/2), px(right))
	p.add(`<use href="#%s" class="line"/>`, id)
	p.add(`<path class="base" d="M%d %sH%s"/>`, left, px(lineTop+lineHeight), px(right))
	for i, n := range []int{0, count, 2 * count} {
		p.add(`<text class="small end" x="%d" y="%s">%d</text>`, left-8, px(lineTop+lineHeight-float64(i)*lineHeight/2+4), n)
	}

	p.add(`<g transform="translate(0 %d)"><path class="denied" d="%s"/><path class="passed" d="%s"/></g>`, stripBase, all, bars(c.admitted))
	p.windows(c.windows)

	class := "most"
	if peak > count {
		class = "most over"
	}
	p.add(`<text class="%s" x="%s" y="%d">%d</text>`, class, px(right+16), lineTop+20, peak)
	p.add(`<text class="small" x="%s" y="%d">the most in</text>`, px(right+16), lineTop+37)
	p.add(`<text class="small" x="%s" y="%d">any minute</text>`, px(right+16), lineTop+51)
	p.add(`<text class="small" x="%s" y="%d">%d in all</text>`, px(right+16), stripBase-4, len(c.admitted))
	p.add(`</g>`)
}

// counts draws the line of the trailing counts: at each second, the largest count of that second.
func counts(admitted []int64) string {
	var b strings.Builder
	second := int64(time.Second)
	was, drawn := -1, int64(-1)
	for at := int64(0); at <= int64(length); at += second {
		n := trailing(admitted, at, int64(period))
		for _, call := range admitted {
			if call > at && call < at+second {
				n = max(n, trailing(admitted, call, int64(period)))
			}
		}
		last := at == int64(length)
		if n == was && !last {
			continue
		}
		if drawn >= 0 && drawn < at-second { // the line is level up to here
			fmt.Fprintf(&b, " %s %s", px(x(at-second)), px(countY(was)))
		}
		fmt.Fprintf(&b, " %s %s", px(x(at)), px(countY(n)))
		was, drawn = n, at
	}
	return strings.TrimPrefix(b.String(), " ")
}

func countY(n int) float64 { return lineTop + lineHeight - float64(n)*lineHeight/(2*count) }

// bars draws how many calls each span of 2 s has, upwards from 0.
func bars(calls []int64) string {
	var b strings.Builder
	was := 0
	for from := int64(0); from <= int64(length); from += int64(bin) {
		n := trailing(calls, from+int64(bin)-1, int64(bin))
		if n == was {
			continue
		}
		if was == 0 {
			fmt.Fprintf(&b, "M%s 0", px(x(from)))
		} else {
			fmt.Fprintf(&b, "H%s", px(x(from)))
		}
		if fmt.Fprintf(&b, "V%s", px(-float64(n)*callHeight)); n == 0 {
			b.WriteString("z")
		}
		was = n
	}
	return b.String()
}

// windows draws the brackets under the calls.
func (p *picture) windows(ends []int64) {
	var b strings.Builder
	for _, end := range ends {
		from := max(0, end-int64(period))
		fmt.Fprintf(&b, "M%s %dv4H%sv-4", px(x(from)+1), stripBase+3, px(min(x(end), right)-1))
	}
	if b.Len() > 0 {
		p.add(`<path class="base" d="%s"/>`, b.String())
	}
}

func x(ns int64) float64 { return left + float64(ns)/1e9*perSecond }

// px writes a length with one digit behind the point.
func px(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
