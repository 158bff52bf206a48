package reload

import (
	"fmt"
	"maps"
	"slices"
)

// changes are the names of what a reload has changed.
type changes struct {
	added, changed, gone []string
}

// mostNames is how many names a line of the log has of a kind.
const mostNames = 20

// attrs are what the log says of them. gone is its word for the names that are in the file no longer.
func (c *changes) attrs(gone string) (attrs []any) {
	for _, kind := range []struct {
		name  string
		names []string
	}{{"added", c.added}, {"changed", c.changed}, {gone, c.gone}} {
		if n := len(kind.names); n > mostNames {
			attrs = append(attrs, kind.name, append(kind.names[:mostNames:mostNames], fmt.Sprintf("and %d more", n-mostNames)))
		} else if n > 0 {
			attrs = append(attrs, kind.name, kind.names)
		}
	}
	return attrs
}

// changesOf compares texts by their names.
func changesOf(before, after map[string]string) (c changes) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if text, there := before[name]; !there {
			c.added = append(c.added, name)
		} else if text != after[name] {
			c.changed = append(c.changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			c.gone = append(c.gone, name)
		}
	}
	return c
}
