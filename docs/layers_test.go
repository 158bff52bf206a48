package docs

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// layers is the list in docs/design.md of who may import whom, from the top.
var layers = regexp.MustCompile("(?s)### Who may import whom.*?```\n(.*?)```")

// goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath string
	Doc        string // the first sentence of its comment
	GoFiles    []string
	Imports    []string
}

// module is the path of the module, which whoever takes the project over may change.
var module = sync.OnceValue(func() string {
	out, _ := exec.Command("go", "list", "-m").Output()
	return strings.TrimSpace(string(out))
})

// nameOf returns what the list calls a package: its path in the module, and celld for the program itself.
func nameOf(path string) string {
	if path == module() {
		return "celld"
	}
	return strings.TrimPrefix(path, module()+"/")
}

func (p *goPackage) name() string { return nameOf(p.ImportPath) }

// product returns the packages of the product, by name.
func product(t *testing.T) map[string]*goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports", "./...")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]*goPackage{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &goPackage{}
		switch err := d.Decode(p); {
		case errors.Is(err, io.EOF):
			return packages
		case err != nil:
			t.Fatal(err)
		case len(p.GoFiles) > 0:
			packages[p.name()] = p
		}
	}
}

// lines returns the line of each package in the list. A name of its own counts more than the folder that it is in.
func lines(t *testing.T, list string, packages map[string]*goPackage) map[string]int {
	t.Helper()
	lines, own := map[string]int{}, map[string]bool{}
	for n, line := range strings.Split(strings.TrimSpace(list), "\n") {
		for _, name := range strings.Fields(line) {
			folder, all := strings.CutSuffix(name, "*")
			some := false
			for pkg := range packages {
				switch {
				case pkg == name && own[pkg]:
					t.Errorf("%s stands twice", name)
				case pkg == name:
					lines[pkg], own[pkg], some = n, true, true
				case all && strings.HasPrefix(pkg, folder):
					if some = true; !own[pkg] {
						lines[pkg] = n
					}
				}
			}
			if !some {
				t.Errorf("there is no package %s", name)
			}
		}
	}
	return lines
}

// TestLayers holds the imports to the list.
func TestLayers(t *testing.T) {
	packages := product(t)
	found := layers.FindStringSubmatch(pages(t)["docs/design.md"])
	if found == nil {
		t.Fatal("there is no list")
	}
	lines, looked := lines(t, found[1], packages), 0
	for name, p := range packages {
		at, listed := lines[name]
		serves := strings.HasSuffix(name, "test")
		if !listed && !serves {
			t.Errorf("%s is not in the list", name)
		}
		for _, path := range p.Imports {
			to := nameOf(path)
			switch {
			case path == "testing" && !serves:
				t.Errorf("%s imports testing, and its name does not end in test", name)
			case packages[to] == nil || serves:
			case strings.HasSuffix(to, "test"):
				t.Errorf("%s imports %s, which is for tests", name, to)
			case lines[to] <= at:
				t.Errorf("%s imports %s, which does not stand below it", name, to)
			}
			looked++
		}
	}
	if looked < 200 {
		t.Errorf("%d imports were looked at", looked)
	}
}

// TestPackagesSayTheirJob wants the sentence to which docs/design.md sends those who look for a package.
func TestPackagesSayTheirJob(t *testing.T) {
	for name, p := range product(t) {
		if p.Doc == "" {
			t.Errorf("%s has no comment", name)
		}
	}
}

// TestWingsComeOff: who imports a wing, beside the program, would hold it when main.go no longer does.
func TestWingsComeOff(t *testing.T) {
	main, err := os.ReadFile("../main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(main), "var wings = ")
	list, _, _ = strings.Cut(list, "\n}")
	only := map[string]string{"resp/script": "celld", "store/remote": "resp/engine"}
	for _, wing := range regexp.MustCompile(`(\w+)\.Wing\(`).FindAllStringSubmatch(list, -1) {
		only["resp/"+wing[1]] = "celld"
	}
	if len(only) < 3 {
		t.Errorf("the wings are %v", only)
	}
	for name, p := range product(t) {
		for _, path := range p.Imports {
			if to := nameOf(path); only[to] != "" && only[to] != name && !strings.HasSuffix(name, "test") {
				t.Errorf("%s imports %s, which only %s may", name, to, only[to])
			}
		}
	}
}
