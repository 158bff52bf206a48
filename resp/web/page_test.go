package web

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"celld/internal/celldtest"
	"celld/resp"
)

// Many viewers cost one reading.
func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := int64(0)
		r := readings{take: func() *resp.Overview { n++; return &resp.Overview{Allowed: n} }}
		for at, want := range []string{"1", "1", "2", "2", "3"} {
			if got := string(r.read()); !strings.Contains(got, `"allowed":`+want+",") {
				t.Errorf("after %d: %s", at, got)
			}
			celldtest.Pass(readingTime / 2)
		}
	})
}

// The page has one script and one style, which its rules name, loads nothing of others, and writes no text as HTML.
func TestPageIsWhole(t *testing.T) {
	for _, element := range []string{"script", "style"} {
		if n := strings.Count(livePage, "<"+element); n != 1 {
			t.Errorf("%d × %s", n, element)
		}
	}
	for _, bad := range []string{
		`\son[a-z]+=`, `\sstyle=`, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function`, `@import|url\([^#]`,
		`(src|href)="[^d#m]`,
	} {
		if found := regexp.MustCompile(bad).FindString(livePage); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	urls := regexp.MustCompile(`[a-z]+://[^"' ]*`).FindAllString(livePage, -1)
	if len(urls) != 1 || urls[0] != "http://www.w3.org/2000/svg" {
		t.Errorf("URLs: %q", urls)
	}
}

// Texts stand out from what is behind them by 4.5 to 1 and more, in light and in dark.
func TestContrast(t *testing.T) {
	palettes := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(livePage, -1)
	if len(palettes) != 2 {
		t.Fatalf("%d palettes", len(palettes))
	}
	for _, palette := range palettes {
		colours := map[string]float64{}
		for _, c := range regexp.MustCompile(`--([a-z]+): (#[0-9a-f]+)`).FindAllStringSubmatch(palette[1], -1) {
			colours[c[1]] = luminance(t, c[2])
		}
		for _, text := range []string{"text", "dim", "allowed", "limited", "good", "bad"} {
			for _, behind := range []string{"back", "card"} {
				a, b := colours[text]+0.05, colours[behind]+0.05
				if ratio := max(a, b) / min(a, b); !(ratio >= 4.5) {
					t.Errorf("%s on %s: %.2f", text, behind, ratio)
				}
			}
		}
	}
}

// luminance is WCAG's.
func luminance(t *testing.T, colour string) float64 {
	hex := colour[1:]
	if len(hex) == 3 {
		hex = fmt.Sprintf("%[1]c%[1]c%[2]c%[2]c%[3]c%[3]c", hex[0], hex[1], hex[2])
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
