package check

import (
	"encoding/json"

	"celld/cell"
)

// A world sends its history to the process that runs it, which checks it: in WebAssembly that took a third of a run.

// sent is a History with the texts of limits.
type sent struct {
	History
	Calls []sentCall
}

type sentCall struct {
	Call
	Limits []string
}

// Encode writes a history as a line.
func Encode(h History) []byte {
	s := sent{History: h}
	for _, c := range h.Calls {
		if c.Times = c.Times[:min(len(c.Times), mostInstants+1)]; c.Bounded {
			c.Times = nil // which only Limits looks at
		}
		one := sentCall{Call: c}
		for _, l := range c.limits() {
			one.Limits = append(one.Limits, l.String())
		}
		s.Calls = append(s.Calls, one)
	}
	line, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return line
}

// Decode reads what Encode has written.
func Decode(line []byte) (h History, err error) {
	var s sent
	if err := json.Unmarshal(line, &s); err != nil {
		return h, err
	}
	h = s.History
	for _, one := range s.Calls {
		c := one.Call
		for i, text := range one.Limits {
			l, err := cell.ParseLimit(text)
			if err != nil {
				return h, err
			}
			if i == 0 {
				c.Limit = l
			} else {
				c.Others = append(c.Others, l)
			}
		}
		h.Calls = append(h.Calls, c)
	}
	return h, nil
}
