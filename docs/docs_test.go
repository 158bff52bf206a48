// Package docs has no code. Its tests hold the pages together: each link leads somewhere, and what they name is there.
// Two hold pages, comments and messages to plain words.
package docs

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"celld/cell"
)

// pages returns the Markdown files that readers are sent to, by their paths from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "bench/README.md"} {
		paths, _ := filepath.Glob("../" + pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pages[strings.TrimPrefix(path, "../")] = string(text)
		}
	}
	if len(pages) < 9 {
		t.Fatalf("%d pages", len(pages))
	}
	return pages
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what GitHub makes of a page's headings.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return names
}

// TestLinks follows each link to a file, and to a heading where it names one.
func TestLinks(t *testing.T) {
	all, followed := pages(t), 0
	for page, text := range all {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			followed++
			path, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat("../" + target); err != nil {
				t.Errorf("%s: %s: no such file", page, l[1])
			} else if anchor != "" && !slices.Contains(anchors(all[target]), anchor) {
				t.Errorf("%s: %s: the headings there are %q", page, l[1], anchors(all[target]))
			}
		}
	}
	if followed < 50 {
		t.Errorf("%d links were followed", followed)
	}
}

// TestEveryPageIsLinked looks for each page among the links of README.md, and those in docs/ among the links of docs/README.md.
func TestEveryPageIsLinked(t *testing.T) {
	all := pages(t)
	for page := range all {
		index, link := "README.md", page
		if in, inDocs := strings.CutPrefix(page, "docs/"); inDocs && in != "README.md" {
			index, link = "docs/README.md", in
		}
		if page != "README.md" && !strings.Contains(all[index], "("+link+")") {
			t.Errorf("%s has no link to %s", index, page)
		}
	}
}

// TestDocsAreShort bounds what there is to read. A word is what stands between blanks and has a letter or a digit.
func TestDocsAreShort(t *testing.T) {
	words, word := 0, regexp.MustCompile(`\S*[A-Za-z0-9]\S*`)
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/") {
			words += len(word.FindAllString(text, -1))
		}
	}
	if words > 23_400 {
		t.Errorf("the pages in docs/ have %d words; they may have 23,400", words)
	}
}

// TestREADMEIsShort keeps reference material out of it.
func TestREADMEIsShort(t *testing.T) {
	if n := strings.Count(pages(t)["README.md"], "\n"); n > 150 {
		t.Errorf("README.md has %d lines; what is more than 150 belongs on a page in docs/", n)
	}
}

var (
	target   = regexp.MustCompile(`\bmake ([a-z-]+)`)
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	inTree   = regexp.MustCompile(`^(cell|store|resp|persistence|internal|integration_test|bench|examples|docs)/[\w./*-]*$`)
)

// TestLimitsAreLimits parses, with package cell, what looks like a limit: 100/1m,algo=log.
func TestLimitsAreLimits(t *testing.T) {
	limit, read := regexp.MustCompile(`^[0-9]+/[^ ]+$`), 0
	for page, text := range pages(t) {
		for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			for word := range strings.FieldsSeq(span[1]) {
				if !limit.MatchString(word) || word == "100/minute" { // as the Python library writes it
					continue
				}
				read++
				if _, err := cell.ParseLimit(word); err != nil {
					t.Errorf("%s: %s: %v", page, word, err)
				}
			}
		}
	}
	if read < 50 {
		t.Errorf("%d limits were read", read)
	}
}

// expected are the names that the error of a wrong limit lists.
func expected(t *testing.T, wrong string) []string {
	t.Helper()
	var mistake *cell.LimitError
	if _, err := cell.ParseLimit(wrong); !errors.As(err, &mistake) {
		t.Fatal(wrong, err)
	}
	list := strings.Replace(strings.TrimPrefix(mistake.Want, "expected "), " or ", ", ", 1)
	return strings.Split(list, ", ")
}

// TestPartsOfLimits looks for each algorithm and each option in the reference and in the man page.
func TestPartsOfLimits(t *testing.T) {
	reference := pages(t)["docs/reference/limits.md"]
	code, err := os.ReadFile("../packaging/render/celld-commands.7.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, man, _ := strings.Cut(strings.ReplaceAll(string(code), `\-`, "-"), "How to write a limit")
	man, _, _ = strings.Cut(man, "\n.El\n")
	for _, name := range expected(t, "1/1m,algo=?") {
		if !strings.Contains(reference, "| `algo="+name+"` |") || !regexp.MustCompile(`\b`+name+`\b`).MatchString(man) {
			t.Errorf("algo=%s is not on both pages", name)
		}
	}
	for _, name := range expected(t, "1/1m,?") {
		if !regexp.MustCompile("\\| `"+name+"[=`]").MatchString(reference) || !regexp.MustCompile(`Cm `+name+`\s`).MatchString(man) {
			t.Errorf("option %s is not on both pages", name)
		}
	}
}

// way is what a doc.go tells of a way through several packages, in words with a blank between them.
type way struct{ folder, text string }

// file is the path of a file that a way names: in its own folder, or from the root of the repository.
func (w way) file(name string) string {
	if _, err := os.Stat("../" + w.folder + "/" + name); err == nil {
		return "../" + w.folder + "/" + name
	}
	return "../" + name
}

// ways returns the sections of doc.go files to which docs/design.md sends its readers, by their headings.
func ways(t *testing.T) map[string]way {
	t.Helper()
	found := map[string]way{}
	row := regexp.MustCompile("(?m)^\\| ([^|`]+) \\| `([a-z/]+)/doc\\.go` \\|$")
	for _, row := range row.FindAllStringSubmatch(pages(t)["docs/design.md"], -1) {
		code, err := os.ReadFile("../" + row[2] + "/doc.go")
		if err != nil {
			t.Fatal(err)
		}
		_, section, told := strings.Cut(string(code), "\n// # "+row[1]+"\n")
		if !told {
			t.Errorf("%s/doc.go has no heading %q", row[2], row[1])
		}
		section = regexp.MustCompile(`(?s)\n(?:// # |package ).*`).ReplaceAllString(section, "")
		found[row[1]] = way{row[2], strings.Join(strings.Fields(strings.ReplaceAll(section, "//", " ")), " ")}
	}
	if len(found) < 6 {
		t.Errorf("%d ways are told", len(found))
	}
	return found
}

// TestDesignNamesCode looks for the methods and fields that docs/design.md and the ways name: Session.Serve.
func TestDesignNamesCode(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"cell", "store", "persistence", "resp"} {
		err := filepath.WalkDir("../"+folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				var text []byte
				text, err = os.ReadFile(path)
				code.Write(text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var said [][]string
	for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(pages(t)["docs/design.md"], ""), -1) {
		said = append(said, regexp.MustCompile(`^([A-Za-z]+)\.([A-Za-z]{3,})$`).FindAllStringSubmatch(span[1], -1)...)
	}
	for _, w := range ways(t) {
		said = append(said, regexp.MustCompile(`\b([A-Za-z]+)\.([A-Za-z]{3,})\b`).FindAllStringSubmatch(w.text, -1)...)
	}
	said = slices.DeleteFunc(said, func(names []string) bool { return names[1] == "CL" }) // commands
	for _, names := range said {
		if regexp.MustCompile(`func \(\w+ \*?` + names[1] + `\) ` + names[2] + `\(`).MatchString(code.String()) {
			continue
		}
		body := regexp.MustCompile(`(?s)\ntype ` + names[1] + ` (?:struct|interface) \{(.*?)\n\}`).FindString(code.String())
		if !regexp.MustCompile(`(?m)^\t(\w+, )*` + names[2] + `\b`).MatchString(body) {
			t.Errorf("there is no %s", names[0])
		}
	}
	if len(said) < 50 {
		t.Errorf("%d names were looked for", len(said))
	}
}

// declares reports whether code has a method, function or type of this name: Session.Serve.
func declares(code []byte, name string) bool {
	declared := `(func|type) ` + name + `\b`
	if typ, method, isMethod := strings.Cut(name, "."); isMethod {
		declared = `func \(\w+ \*?` + typ + `\) ` + method + `\(`
	}
	return regexp.MustCompile(`(?m)^` + declared).Match(code)
}

// TestDesignNamesFiles looks for the methods, functions and types that docs/design.md and the ways say are in a file: `Session.Serve` in
// `resp/session.go`. The ways have no backquotes. It also looks for each file that the ways name.
func TestDesignNamesFiles(t *testing.T) {
	const name = `(?:[A-Za-z]+\.[A-Za-z]+|[a-z]+[A-Z][A-Za-z]*)` // a method, or a function within a package
	said := 0
	look := func(path, names string) {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said++
		for _, name := range regexp.MustCompile(`[A-Za-z.]{4,}`).FindAllString(names, -1) { // not: and, or
			if !declares(code, name) {
				t.Errorf("%s is not in %s", name, path)
			}
		}
	}
	text := strings.Join(strings.Fields(pages(t)["docs/design.md"]), " ")
	for _, s := range regexp.MustCompile("((?:`[A-Za-z.]+`(?:, | and )?)+) in `([a-z/_]+\\.go)`").FindAllStringSubmatch(text, -1) {
		look("../"+s[2], s[1])
	}
	for heading, w := range ways(t) {
		for _, s := range regexp.MustCompile(`((?:`+name+`(?:, | and | or )?)+) in ([a-z/_]+\.go)`).FindAllStringSubmatch(w.text, -1) {
			look(w.file(s[2]), s[1])
		}
		for _, file := range regexp.MustCompile(`[a-z/_]+\.go\b`).FindAllString(w.text, -1) {
			if _, err := os.Stat(w.file(file)); err != nil {
				t.Errorf("%s: %v", heading, err)
			}
		}
	}
	if said < 45 {
		t.Errorf("%d methods are said to be in a file", said)
	}
}

// TestNamesAreThere looks for the files and the targets of make that pages name.
func TestNamesAreThere(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range pages(t) {
		code := strings.Join(fence.FindAllString(text, -1), "\n")
		for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			code += "\n" + span[1]
			if !inTree.MatchString(span[1]) {
				continue
			}
			if found, _ := filepath.Glob("../" + span[1]); found == nil {
				t.Errorf("%s names %s, which is not there", page, span[1])
			}
		}
		for _, name := range target.FindAllStringSubmatch(code, -1) {
			if !regexp.MustCompile(`(?m)^` + name[1] + `:.* ## `).Match(makefile) {
				t.Errorf("%s: there is no `make %s`", page, name[1])
			}
		}
	}
}

var (
	// plainer finds words for which there are plainer ones: except, several instances, what was taken, and a verb in place of "has it
	// do", as in "makes it wait".
	plainer = regexp.MustCompile(`(?i)\bbut for |\b(?:many|several|both|two|three|all) celld\b|\s\d+ celld\b|\bwhat (?:is|was) spent\b|` +
		`\b(?:has|have|had) (?:it|them|him|others|callers|clients|nobody|(?:an?|the|its|each) [\w']+) ` +
		`(?:ask|wait|speak|keep|forget|serve|send|give|go|lead|begin|sleep|decide|wake|drop|store)\b`)
	opening = regexp.MustCompile(`^(\w+) (?:has|have) `)
)

// checkWords fails where a text has a word for which there is a plainer one.
func checkWords(t *testing.T, where, text string) {
	t.Helper()
	if found := plainer.FindString(strings.Join(strings.Fields(text), " ")); found != "" {
		t.Errorf("%s: %q", where, found)
	}
}

// TestWordsOfPages holds the pages and the live page to plain words.
func TestWordsOfPages(t *testing.T) {
	for page, text := range pages(t) {
		checkWords(t, page, text)
	}
	live, err := os.ReadFile("../resp/web/page.html")
	if err != nil {
		t.Fatal(err)
	}
	checkWords(t, "page.html", string(live))
}

// riddles are words of earlier days for what the glossary has a word for.
var riddles = regexp.MustCompile(`(?i)\b(?:tally|tallies|doubts|goes aside|go aside|a visit's|visits to the engine)\b`)

// TestWords holds the glossary to 40 words, each of which the code has. No comment has a word that the glossary replaces.
func TestWords(t *testing.T) {
	contributing, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(contributing), "\n## Words\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1)[1:] {
		words = append(words, strings.Split(row[1], ", ")...)
	}
	if words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "---") }); len(words) < 20 || len(words) > 40 {
		t.Errorf("the glossary has %d words: %q", len(words), words)
	}
	var code strings.Builder
	err = fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil &&
			(entry.Name() == ".cache" || entry.Name() == "node_modules" || entry.Name() == "integration_test" || entry.Name() == "docs") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil // a link, such as .cache may be
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile("../" + path)
		if found := riddles.Find(text); found != nil {
			t.Errorf("%s: %q, for which CONTRIBUTING.md has another word", path, found)
		}
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(code.String()), "//", "")), " ")
	for _, word := range words {
		if !strings.Contains(all, strings.ToLower(word)) && !strings.Contains(all, strings.ReplaceAll(strings.ToLower(word), " ", "")) {
			t.Errorf("the glossary has %q, and no code has it", word)
		}
	}
}

// TestComments holds comments, and texts outside of tests, to plain words. No comment opens with "X has" above what X declares.
func TestComments(t *testing.T) {
	files := token.NewFileSet()
	lineOf := func(p token.Pos) int { return files.Position(p).Line }
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == "node_modules") { // .cache may be a link
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		begins := map[int]string{} // by the line below a comment, the name that it begins with
		for _, c := range file.Comments {
			checkWords(t, files.Position(c.Pos()).String(), c.Text())
			if name := opening.FindStringSubmatch(c.Text()); name != nil {
				begins[lineOf(c.End())+1] = name[1]
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var names []*ast.Ident
			switch n := n.(type) {
			case *ast.FuncDecl:
				names = append(names, n.Name)
			case *ast.TypeSpec:
				names = append(names, n.Name)
			case *ast.ValueSpec:
				names = n.Names
			case *ast.Field:
				names = n.Names
			case *ast.BasicLit:
				if n.Kind == token.STRING && !strings.HasSuffix(path, "_test.go") {
					checkWords(t, files.Position(n.Pos()).String(), n.Value)
				}
			}
			for _, name := range names {
				if begins[lineOf(name.Pos())] == name.Name {
					t.Errorf("%s: the comment begins with %q and has or have", files.Position(name.Pos()), name.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// aText is what stands before a text that is all of a declaration.
var aText = regexp.MustCompile(`^\t*(?:const |var )?\w+ += $`)

// columns counts the columns of a line, and four for a tab.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// mayBeLong returns the lines of a node that may be longer than others: rows of a table, and what is of a long text.
func mayBeLong(n ast.Node, position func(token.Pos) token.Position, lines []string) (numbers []int) {
	line := func(p token.Pos) int { return position(p).Line }
	switch n := n.(type) {
	case *ast.BasicLit:
		first, code := line(n.Pos()), lines[line(n.Pos())-1]
		indent := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
		text, _, _ := strings.Cut(n.Value, "\n")
		if columns(indent+"\t"+text+",") > 140 || aText.MatchString(code[:position(n.Pos()).Column-1]) {
			numbers = append(numbers, first)
		}
		for l := first + 1; l <= line(n.End()); l++ {
			numbers = append(numbers, l)
		}
	case *ast.CompositeLit:
		_, list := n.Type.(*ast.ArrayType)
		_, table := n.Type.(*ast.MapType)
		on := map[int]int{line(n.Lbrace): 1, line(n.Rbrace): 1} // what begins or ends there
		for _, row := range n.Elts {
			on[line(row.Pos())]++
			on[line(row.End())]++
		}
		for _, row := range n.Elts {
			if at := line(row.Pos()); (list || table) && at == line(row.End()) && on[at] == 2 {
				numbers = append(numbers, at)
			}
		}
	}
	return numbers
}

// TestColumns holds lines of Go to 140 columns, except for rows of tables and texts.
func TestColumns(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == "node_modules") { // .cache may be a link
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		lines, long := strings.Split(string(text), "\n"), map[int]bool{}
		for i, line := range lines {
			if columns(line) > 140 {
				long[i+1] = true
			}
		}
		if err != nil || len(long) == 0 {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, line := range mayBeLong(n, files.Position, lines) {
				delete(long, line)
			}
			return true
		})
		for line := range long {
			t.Errorf("%s:%d: there is something above column 140", path, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
