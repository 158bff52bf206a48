package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// TestErrorsPage holds docs/reference/errors.md to the texts of errors that clients are told: it has their first words, and no others.
func TestErrorsPage(t *testing.T) {
	first, words := regexp.MustCompile(`^([A-Z]{3,}|Cell error:) `), map[string]bool{}
	err := filepath.WalkDir("../resp", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "errors.go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				value, _ := strconv.Unquote(text.Value)
				if word := first.FindStringSubmatch(value); word != nil {
					words[word[1]] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(pages(t)["docs/reference/errors.md"], -1) {
		page[row[1]] = true
	}
	if got, want := slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(words)); !slices.Equal(got, want) {
		t.Errorf("the page has %q, and the code %q", got, want)
	}
}
