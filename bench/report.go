//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// report gathers the samples of all steps. Its exported part is the JSON file.
type report struct {
	Date    string            `json:"date"`
	Command string            `json:"command"`
	Machine machine           `json:"machine"`
	Peers   map[string]string `json:"peers"` // name → version
	Missing []string          `json:"left_out,omitempty"`
	Rows    []*rowReport      `json:"rows"`
	Goals   []outcome         `json:"goals"`

	order []*peer
}

type rowReport struct {
	Name   string                       `json:"name"`
	Title  string                       `json:"title"`
	Peers  map[string]map[metric]spread `json:"peers"`
	Failed map[string]string            `json:"failed,omitempty"`

	samples map[string][]sample
	work    work
}

func newReport(o options, peers []*peer, missing []string) *report {
	r := &report{
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Command: o.commandLine(),
		Machine: thisMachine(), Peers: map[string]string{}, Missing: missing, order: peers,
	}
	return r
}

func (r *report) add(row *row, p *peer, result sample, err error) {
	i := slices.IndexFunc(r.Rows, func(known *rowReport) bool { return known.Name == row.name })
	if i < 0 {
		i = len(r.Rows)
		r.Rows = append(r.Rows, &rowReport{
			Name: row.name, Title: row.title, work: row.work,
			Peers: map[string]map[metric]spread{}, Failed: map[string]string{}, samples: map[string][]sample{},
		})
	}
	known := r.Rows[i]
	if err != nil {
		known.Failed[p.name] = err.Error()
		return
	}
	known.samples[p.name] = append(known.samples[p.name], result)
	figures := map[metric]spread{}
	for m := range result {
		var values []float64
		for _, s := range known.samples[p.name] {
			values = append(values, s[m])
		}
		figures[m] = spreadOf(values)
	}
	known.Peers[p.name] = figures
}

// median returns a figure, where it was measured.
func (r *report) median(row, peer string, m metric) (float64, bool) {
	for _, known := range r.Rows {
		if known.Name == row {
			figure, ok := known.Peers[peer][m]
			return figure.Median, ok
		}
	}
	return 0, false
}

// write prints the Markdown tables and leaves them, and the JSON, in the folder. Without one it prints only, and judges
// only the goals that it could.
func (r *report) write(out io.Writer, folder string) error {
	for _, g := range goals {
		if o := g.judge(r); folder != "" || o.Measured != nil {
			r.Goals = append(r.Goals, o)
		}
	}
	text := r.markdown()
	if _, err := io.WriteString(out, text); err != nil || folder == "" {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "latest.md"), []byte(text), 0o644); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, "latest.json"), append(data, '\n'), 0o644)
}
