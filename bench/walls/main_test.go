package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestCircle(t *testing.T) {
	for _, test := range []struct{ edges, want string }{
		{"", ""},
		{"ab bc", ""},
		{"ab ba", "a b"},
		{"ab bc ca cd de ed", "a b c"},
		{"ab ba bc cd de ec", "c d e"},
		{"ab bc cb cd dc", "b c d"},
	} {
		g := graph{}
		for edge := range strings.FieldsSeq(test.edges) {
			for _, file := range strings.Split(edge, "") {
				if g[file] == nil {
					g[file] = map[string]bool{}
				}
			}
			g[edge[:1]][edge[1:]] = true
		}
		if got := strings.Join(g.circle(), " "); got != test.want {
			t.Errorf("%q: %q, want %q", test.edges, got, test.want)
		}
	}
}

// Who knows whom: by functions, by methods and by fields, and not by other packages, nor by a file's own names.
func TestKnows(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{
		"a.go": "package p\nimport \"fmt\"\ntype T struct{ field int }\nfunc own() { fmt.Println(); own() }",
		"b.go": "package p\nfunc (t T) method() {}",
		"c.go": "package p\nvar _ = struct{ x int }{1}.x\nfunc c() { var t = made(); t.method() }",
		"d.go": "package p\nfunc d(t interface{ method() }) { c() }\nfunc made() (t T) { t.field = 1; return t }",
	} {
		f, err := parser.ParseFile(fset, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(fset, "source", nil)}).Check("p", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	g := knows(fset, files, info, pkg)
	for file, want := range map[string]string{"a.go": "", "b.go": "a.go", "c.go": "b.go d.go", "d.go": "a.go c.go"} {
		if got := strings.Join(slices.Sorted(maps.Keys(g[file])), " "); got != want {
			t.Errorf("%s knows %q, want %q", file, got, want)
		}
	}
}

func TestCodeLines(t *testing.T) {
	const text = `// Package p is a test.
package p

import "fmt"

// f has a comment.
func f() { // and another
	fmt.Println("a",

		/* not this */
		` + "`b\nc`" + `)
}
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got := codeLines(fset, f); got != 7 {
		t.Errorf("%d lines", got)
	}
}
