// Walls measures how the files of a package know each other.
//
//	go -C bench build -o ../.cache/bin/ ./walls    what `make walls` runs
//	.cache/bin/walls ./resp/...                   a line for each package
//	.cache/bin/walls -v ./resp                    the files of its largest circle, and whom they know
//	.cache/bin/walls -most 12 ./...               fail where a circle has more files
//
// A file knows another if it names something that the other declares, as the compiler sees it. Files that reach each other so are a circle:
// who wants to understand one of them has to read them all. A line of code is one that holds more than a comment. Packages whose names end
// in test are summed up apart.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// graph is who knows whom.
type graph map[string]map[string]bool

// reach adds to seen what can be reached from a file.
func (g graph) reach(from string, seen map[string]bool) {
	for to := range g[from] {
		if !seen[to] {
			seen[to] = true
			g.reach(to, seen)
		}
	}
}

// circle returns the largest group of files that reach each other, sorted; nil where no two do.
func (g graph) circle() (largest []string) {
	reached := map[string]map[string]bool{}
	for file := range g {
		reached[file] = map[string]bool{}
		g.reach(file, reached[file])
	}
	for _, file := range slices.Sorted(maps.Keys(g)) {
		group := []string{file}
		for to := range reached[file] {
			if to != file && reached[to][file] {
				group = append(group, to)
			}
		}
		if len(group) > max(1, len(largest)) {
			largest = group
		}
	}
	slices.Sort(largest)
	return largest
}

// knows returns the graph of a package's files.
func knows(fset *token.FileSet, files []*ast.File, info *types.Info, pkg *types.Package) graph {
	g := graph{}
	base := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	for _, f := range files {
		g[base(f.Pos())] = map[string]bool{}
	}
	for name, object := range info.Uses {
		from, to := base(name.Pos()), base(object.Pos())
		if object.Pkg() == pkg && from != to && g[to] != nil {
			g[from][to] = true
		}
	}
	return g
}

// codeLines counts the lines of a file that hold more than a comment.
func codeLines(fset *token.FileSet, f *ast.File) int {
	lines := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil:
			return false
		case *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.BasicLit: // a text of several lines
			for at := fset.Position(n.Pos()).Line; at <= fset.Position(n.End()).Line; at++ {
				lines[at] = true
			}
		}
		lines[fset.Position(n.Pos()).Line] = true
		lines[fset.Position(n.End()-1).Line] = true
		return true
	})
	return len(lines)
}

func main() {
	most := flag.Int("most", 0, "fail if the circle of a package has more `files`; 0: any number will do")
	verbose := flag.Bool("v", false, "list the files of each circle")
	flag.Parse()
	if err := run(flag.Args(), *most, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "walls:", err)
		os.Exit(1)
	}
}

func run(patterns []string, most int, verbose bool) error {
	const needs = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedImports | packages.NeedDeps
	list, err := packages.Load(&packages.Config{Mode: needs}, patterns...)
	if err != nil {
		return err
	}
	if packages.PrintErrors(list) > 0 {
		return fmt.Errorf("the packages cannot be read")
	}
	slices.SortFunc(list, func(a, b *packages.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	var wide []string
	product, support := 0, 0 // lines of code
	fmt.Printf("%-34s %6s %7s   %s\n", "package", "files", "code", "largest circle")
	for _, p := range list {
		g, code := knows(p.Fset, p.Syntax, p.TypesInfo, p.Types), 0
		for _, f := range p.Syntax {
			code += codeLines(p.Fset, f)
		}
		if strings.HasSuffix(p.PkgPath, "test") {
			support += code
		} else {
			product += code
		}
		circle := g.circle()
		if len(circle) > most && most > 0 {
			wide = append(wide, p.PkgPath)
		}
		fmt.Printf("%-34s %6d %7d   %d\n", p.PkgPath, len(p.Syntax), code, len(circle))
		if verbose {
			for _, file := range circle {
				fmt.Printf("    %-24s knows %s\n", file, strings.Join(slices.Sorted(maps.Keys(g[file])), " "))
			}
		}
	}
	fmt.Printf("%-34s %6s %7d\n%-34s %6s %7d\n", "the product", "", product, "for its tests", "", support)
	if wide != nil {
		return fmt.Errorf(
			"the circle of %s has more than %d files (-v lists them): let one of them be told what it needs, and not ask for it",
			strings.Join(wide, ", "), most)
	}
	return nil
}
