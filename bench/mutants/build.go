//go:build linux

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed helper.go.txt
var helper string

// binary is a package's tests with all its mutants.
type binary struct {
	ctx     context.Context
	pkg     string // "store/policy"
	dir     string
	path    string
	scratch string
	flags   []string
	mutants []mutant
	tests   []test
	reached map[int][]int // the tests that run a mutant, by its number
}

// copyModule copies the tree without what the tests do not read. The tests find the programs in .cache, which are large, by a link.
func copyModule(to string) error {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".git" || d.Name() == "node_modules":
			return filepath.SkipDir
		case path == ".cache":
			absolute, err := filepath.Abs(path)
			if err == nil {
				err = os.Symlink(absolute, filepath.Join(to, path))
			}
			if err == nil && d.IsDir() {
				err = filepath.SkipDir
			}
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o644)
	})
	if err != nil {
		return fmt.Errorf("copy the module: %w", err)
	}
	return nil
}

// build writes the mutants into the tree, compiles the tests, and restores the tree.
func build(ctx context.Context, scratch, tree, pkg string, o options) (*binary, error) {
	b := &binary{ctx: ctx, pkg: filepath.Clean(pkg), scratch: scratch, dir: filepath.Join(tree, pkg), path: filepath.Join(scratch, "tests")}
	fmt.Printf("%s: building\n", b.pkg)
	parsed, err := parse(tree, pkg)
	if err != nil {
		return nil, err
	}
	defer func() {
		for name, text := range parsed.sources {
			os.WriteFile(filepath.Join(b.dir, name), text, 0o644)
		}
		os.Remove(filepath.Join(b.dir, "mutants_helper.go"))
	}()
	without := map[string]bool{}
	os.Remove(b.path) // the package before it had it
	for range 20 {
		if err := b.write(parsed, without); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags=all", "-vet=off", "-ldflags=-s -w", "-gcflags=-e", "-o", b.path, pkg)
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		if err == nil {
			if _, err := os.Stat(b.path); err != nil {
				return nil, errors.New("it has no tests")
			}
			if n := len(without); n > 0 {
				fmt.Printf("%s: %d mutants do not compile\n", b.pkg, n)
			}
			b.flags = []string{"-test.short"}
			if strings.Contains(parsed.imports, "pgregory.net/rapid") {
				b.flags = append(b.flags, "-rapid.checks="+strconv.Itoa(o.checks), "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			}
			return b, nil
		}
		if !b.drop(string(out), without) {
			return nil, fmt.Errorf("go test -c: %s", out)
		}
	}
	return nil, errors.New("too many mutants do not compile")
}

// drop leaves out the mutants of the lines that the compiler complains of.
func (b *binary) drop(messages string, without map[string]bool) bool {
	found := false
	for _, at := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`).FindAllStringSubmatch(messages, -1) {
		line, _ := strconv.Atoi(at[2])
		for _, m := range b.mutants {
			if m.path == filepath.Clean(at[1]) && m.line == line {
				without[m.name] = true
				found = true
			}
		}
	}
	return found
}

type parsedPackage struct {
	name    string
	imports string
	sources map[string][]byte
	files   map[string]*ast.File
	fset    *token.FileSet
	types   *types.Package
	info    *types.Info
}

// parse checks the package's types by what the compiler exports of those that it imports.
func parse(tree, pkg string) (*parsedPackage, error) {
	cmd := exec.Command("go", "list", "-tags=all", "-export", "-deps", "-test",
		"-json=ImportPath,Name,Dir,Export,GoFiles,DepOnly,ForTest", pkg)
	cmd.Dir = tree
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	p := &parsedPackage{
		sources: map[string][]byte{}, files: map[string]*ast.File{}, fset: token.NewFileSet(),
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}},
	}
	exports := map[string]string{}
	var files []*ast.File
	for decoder := json.NewDecoder(strings.NewReader(string(list))); ; {
		var item struct {
			ImportPath, Name, Dir, Export, ForTest string
			GoFiles                                []string
			DepOnly                                bool
		}
		if err := decoder.Decode(&item); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		p.imports += item.ImportPath + "\n"
		if item.ForTest == "" {
			exports[item.ImportPath] = item.Export
		}
		if item.DepOnly || item.ForTest != "" || strings.HasSuffix(item.ImportPath, ".test") {
			continue
		}
		p.name = item.Name
		for _, name := range item.GoFiles {
			if p.sources[name], err = os.ReadFile(filepath.Join(item.Dir, name)); err != nil {
				return nil, err
			}
			p.files[name], err = parser.ParseFile(p.fset, name, p.sources[name], parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return nil, err
			}
			files = append(files, p.files[name])
		}
	}
	imports := importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	p.types, err = (&types.Config{Importer: imports}).Check(p.name, p.fset, files, p.info)
	return p, err
}

func (b *binary) write(p *parsedPackage, without map[string]bool) error {
	b.mutants = nil
	for _, file := range sortedKeys(p.files) {
		m := mutator{
			path: filepath.Join(b.pkg, file), src: p.sources[file], file: p.fset.File(p.files[file].Pos()), pkg: p.types, info: p.info,
			without: without,
			add: func(m mutant) int {
				m.id = len(b.mutants) + 1
				b.mutants = append(b.mutants, m)
				return m.id
			},
		}
		if err := os.WriteFile(filepath.Join(b.dir, file), m.mutate(p.files[file]), 0o644); err != nil {
			return err
		}
	}
	text := strings.NewReplacer("PACKAGE", p.name, "COUNT", strconv.Itoa(len(b.mutants))).Replace(helper)
	return os.WriteFile(filepath.Join(b.dir, "mutants_helper.go"), []byte(text), 0o644)
}
