// Command render writes what is derived from the rows of settings, subcommands and commands: man pages, completions for shells, and a
// commented configuration.
//
//	go -C packaging run ./render -out ../dist/files -version 0.1.0 -date 2026-11-28
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"celld/resp"
	"celld/resp/cgroup"
	"celld/resp/cli"
	"celld/resp/command"
	"celld/resp/engine"
	"celld/resp/envoy"
	"celld/resp/systemd"
	"celld/resp/web"
)

// cfg knows the settings of all wings that main.go lists.
var cfg = resp.Settings(resp.Scripting(nil), engine.Wing(), web.Wing(), envoy.Wing(), systemd.Wing(), cgroup.Wing())

func main() {
	out := flag.String("out", ".", "folder to write to")
	version := flag.String("version", "", "version of celld")
	date := flag.String("date", "", "day of the version, as 2026-11-28")
	flag.Parse()
	if err := run(*out, *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// product is what the templates show.
type product struct {
	Version     string
	Date        string // as mdoc writes it: November 28, 2026
	Groups      []group
	Subcommands []cli.Subcommand
	Commands    []commands
}

// group is a group of settings, in the order of celld --help.
type group struct {
	Name     string
	Settings []setting
}

type setting struct {
	Name, Help, Default string
	Value               string // the default as it may be set; empty: it follows from the machine
	Variable            string
	Kind                string // what the value is: a unit, path, yes|no …
	Words               []string
	File                bool // a path, or a file's name
}

// commands are those of a group, such as limits.
type commands struct {
	Group string
	Rows  []row
}

type row struct{ Name, Usage, Summary string }

func run(out, version, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	p := product{Version: version, Date: day.Format("January 2, 2006"), Groups: settings(), Subcommands: cli.Subcommands, Commands: rows()}
	for name, text := range files {
		t, err := template.New(name).Funcs(functions).Parse(text)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			return err
		}
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func settings() (groups []group) {
	for _, s := range cfg.Settings() {
		if len(groups) == 0 || groups[len(groups)-1].Name != s.Group {
			groups = append(groups, group{Name: s.Group})
		}
		g := &groups[len(groups)-1]
		kind := s.Value.Type()
		one := setting{Name: s.Name, Help: s.Help, Default: s.Default, Kind: kind, File: kind == "path" || kind == "name",
			Variable: "CELLD_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))}
		if strings.Contains(kind, "|") {
			one.Words = strings.Split(kind, "|")
		}
		switch s.Name {
		case "io-threads": // its default is that of the machine that renders
			one.Default = ""
		case "maxmemory": // its default is words
		default:
			one.Value = s.Default
		}
		g.Settings = append(g.Settings, one)
	}
	return groups
}

// rows groups the commands as COMMAND DOCS does, celld's own first.
func rows() (all []commands) {
	add := func(name string, r *command.Row) {
		i := 0
		for i < len(all) && all[i].Group != r.Group {
			i++
		}
		if i == len(all) {
			all = append(all, commands{Group: r.Group})
		}
		all[i].Rows = append(all[i].Rows, row{strings.ToUpper(name), r.Usage, r.Summary})
	}
	for _, own := range []bool{true, false} {
		for _, r := range resp.Commands(cfg) {
			if (r.Since == "") != own {
				continue
			}
			if r.Run != nil {
				add(r.Name, r)
			}
			for _, sub := range r.Sub {
				if sub.Name != "help" {
					add(r.Name+" "+sub.Name, sub)
				}
			}
		}
	}
	return all
}
