package world

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// scene is what goes on in a world beside its clients. Each is a file.
type scene struct {
	name string
	draw func(p *plan)  // changes settings; nil: none
	run  func(w *world) // until its callers have ended
}

var scenes = []scene{
	{"budget", drawBudget, runBudget},
	{"crowd", drawCrowd, runCrowd},
	{"envoy", drawEnvoy, runEnvoy},
	{"guest", drawGuest, runGuest},
	{"http", nil, runHTTP},
	{"older", drawOlder, runOlder},
	{"outage", drawOutage, runOutage},
	{"pause", nil, runPause},
	{"policies", drawPolicies, runPolicies},
	{"secrets", drawSecrets, runSecrets},
	{"tally", nil, runTally},
	{"upkeep", nil, runUpkeep},
	{"whole", drawWhole, runWhole},
}

func (p *plan) drawScenes() {
	for _, s := range scenes {
		if p.chance("scene "+s.name).IntN(4) == 0 {
			p.scenes = append(p.scenes, s)
		}
	}
	for _, s := range slices.Clone(p.scenes) {
		if s.draw != nil && p.has(s.name) {
			s.draw(p)
		}
	}
}

func (p *plan) has(name string) bool {
	return slices.ContainsFunc(p.scenes, func(s scene) bool { return s.name == name })
}

// without leaves a scene out, where it does not go with the rest of the plan.
func (p *plan) without(name string) {
	p.scenes = slices.DeleteFunc(p.scenes, func(s scene) bool { return s.name == name })
}

func (p *plan) set(name, value string) { p.settings = append(p.settings, [2]string{name, value}) }

func (p *plan) setting(name string) (value string) {
	for _, s := range p.settings {
		if s[0] == name {
			value = s[1]
		}
	}
	return value
}

// wrongFile lets all machines read a file that is wrong, which changes nothing. No process starts meanwhile, as none would.
func (w *world) wrongFile(name, wrong, right string) {
	for _, m := range w.all {
		m.well.Lock()
		defer m.well.Unlock()
	}
	if w.fleet != nil {
		w.fleet.well.Lock()
		defer w.fleet.well.Unlock()
	}
	w.write(name, wrong)
	for _, m := range w.all {
		m.reload()
	}
	w.count("wrong file")
	time.Sleep(w.plan.think + 4*w.plan.latency + 10*time.Millisecond) // calls go on
	w.write(name, right)
}

// write replaces a file of settings, which all machines read.
func (w *world) write(name, text string) {
	path := filepath.Join(w.plan.folder, name)
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		panic(err)
	}
}
