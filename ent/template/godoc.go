package template

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// docs are the comments of Go packages.
type docs struct {
	types  map[string]string            // type name to comment
	values map[string]map[string]string // type name to the value of a string constant to comment
}

// readDocs reads the comments of types and of typed string constants.
func readDocs(dirs []string) (docs, error) {
	d := docs{types: map[string]string{}, values: map[string]map[string]string{}}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return d, fmt.Errorf("comments of %s: %w", dir, err)
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return d, fmt.Errorf("comments of %s: %w", dir, err)
			}
			for _, decl := range file.Decls {
				if gd, ok := decl.(*ast.GenDecl); ok {
					d.read(gd)
				}
			}
		}
	}
	return d, nil
}

func (d docs) read(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			if text := withoutName(doc.Text(), spec.Name.Name); text != "" {
				d.types[spec.Name.Name] = text
			}
		case *ast.ValueSpec:
			d.readConstant(spec)
		}
	}
}

func (d docs) readConstant(spec *ast.ValueSpec) {
	kind, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return
	}
	text := spec.Comment.Text()
	if text == "" {
		text = spec.Doc.Text()
	}
	if text = withoutName(text, spec.Names[0].Name); text == "" {
		return
	}
	if d.values[kind.Name] == nil {
		d.values[kind.Name] = map[string]string{}
	}
	d.values[kind.Name][value] = text
}

// withoutName turns a Go comment, "Machine is a host.", into a description that
// stands alone, "A host."
func withoutName(text, name string) string {
	text = strings.Join(strings.Fields(text), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		text = strings.TrimPrefix(rest, "is ")
	}
	return sentence(text)
}

// sentence starts text with a capital and ends it with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(r)) + text[n:]
	if !strings.ContainsRune(".!?", rune(text[len(text)-1])) {
		text += "."
	}
	return text
}
