package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// door is a part with an address of its own.
func door() Part {
	var secure *Param[bool]
	var most *Param[int64]
	var fails, bind *Param[string]
	return Part{
		Rows: func(*Config) []Setting {
			return []Setting{
				{Name: "door-bind", Group: "Door", Value: In(&bind, NewText("", "host:port", CheckHostPort))},
				{Name: "door-tls", Group: "Door", Value: In(&secure, NewYesNo(false))},
				{Name: "door-max-connections", Group: "Door", Value: In(&most, NewInt(5, 1, 9, "n"))},
				{Name: "door-fails", Group: "Door", Value: In(&fails, NewText("", "text", nil))},
				{Name: "more", Group: "Door", Value: In(&most, NewInt(5, 1, 9, "n")), Default: "more than you have"},
			}
		},
		Load: func(_ *Config, given func(string) bool) error {
			if text := fails.Get(); text != "" && given("door-fails") {
				return errors.New(text)
			}
			return nil
		},
		Check: func(*Config) ([]string, error, error) {
			return []string{"it creaks"}, errors.New("mistake"), errors.New("fault")
		},
		Needs: func() string {
			if bind.Get() == "" {
				return "--door-bind"
			}
			return ""
		},
		Door: func() Door { return Door{Name: "door", Addresses: 1, MaxConnections: most, TLS: secure.Get()} },
	}
}

// A part's settings stand before the files, and what the part says is passed on.
func TestParts(t *testing.T) {
	cfg := New(Part{}, door())
	var names []string
	for _, s := range cfg.Settings() {
		names = append(names, s.Name)
	}
	all := strings.Join(names, " ")
	if !strings.Contains(all, " client-output-buffer-limit door-bind door-tls door-max-connections door-fails more dir ") {
		t.Error(all)
	}
	if got := cfg.Setting("more").Default; got != "more than you have" {
		t.Error(got)
	}
	if got := cfg.Setting("door-max-connections").Default; got != "5" {
		t.Error(got)
	}
	if doors := cfg.Doors(); len(doors) != 1 || doors[0].Name != "door" {
		t.Errorf("%+v", doors)
	}
	cfg.Dir.Put(t.TempDir())
	lines, mistakes, faults := cfg.Check()
	if !slices.Equal(lines, []string{"it creaks"}) || mistakes.Error() != "mistake" || faults.Error() != "fault" {
		t.Error(lines, mistakes, faults)
	}
	if New().Setting("door-tls") != nil {
		t.Error("a part that is left out has settings")
	}
}
