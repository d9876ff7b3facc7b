package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// place is one change.
type place struct {
	id                   int // as the changed code knows it, from 1
	file, function, what string
	line                 int
	key                  string // file, function and what, and which of them: what explained.txt names it by
}

// edit puts text around a node, and may replace a token within it. The text has the
// numbers of its places as %d, in order.
type edit struct {
	from, to      int
	before, after string
	at, n         int // the token, if n > 0
	token         string
	places        []*place
}

// finder looks for places in one file.
type finder struct {
	fset     *token.FileSet
	f        *source
	info     *types.Info
	function string
	out      []*place
}

func find(fset *token.FileSet, f *source, info *types.Info) []*place {
	x := &finder{fset: fset, f: f, info: info}
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Name.Name == "String" {
			continue
		}
		x.function = fn.Name.Name
		x.early(fn)
		ast.Inspect(fn.Body, x.visit)
	}
	return x.out
}

func (x *finder) offset(p token.Pos) int { return x.fset.Position(p).Offset }

func (x *finder) textOf(n ast.Node) string {
	text := strings.Join(strings.Fields(string(x.f.text[x.offset(n.Pos()):x.offset(n.End())])), " ")
	if r := []rune(text); len(r) > 70 {
		text = string(r[:70]) + "..."
	}
	return text
}

func (x *finder) place(n ast.Node, what string) *place {
	p := &place{file: x.f.name, function: x.function, what: what, line: x.fset.Position(n.Pos()).Line}
	x.out = append(x.out, p)
	return p
}

func (x *finder) around(n ast.Node, before, after string, places ...*place) *edit {
	x.f.edits = append(x.f.edits, edit{from: x.offset(n.Pos()), to: x.offset(n.End()), before: before, after: after, places: places})
	return &x.f.edits[len(x.f.edits)-1]
}

// early has the function return at once.
func (x *finder) early(fn *ast.FuncDecl) {
	if len(fn.Body.List) < 2 {
		return
	}
	what := "return"
	if r := fn.Type.Results; r != nil && len(r.List) > 0 && len(r.List[0].Names) == 0 {
		var zeros []string
		for _, t := range r.List {
			zeros = append(zeros, "*new("+string(x.f.text[x.offset(t.Type.Pos()):x.offset(t.Type.End())])+")")
		}
		what += " " + strings.Join(zeros, ", ")
	}
	x.around(fn.Body.List[0], "if mut(%d) { "+what+" }; ", "", x.place(fn.Body.List[0], "returns at once"))
}

func (x *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		x.statements(n.List)
	case *ast.CaseClause:
		x.statements(n.Body)
		for _, e := range n.List {
			x.condition(e)
		}
	case *ast.CommClause:
		x.statements(n.Body)
	case *ast.IfStmt:
		x.condition(n.Cond)
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			x.result(e)
		}
	case *ast.CompositeLit:
		x.literal(n)
	case *ast.BinaryExpr:
		x.binary(n)
	case *ast.CallExpr:
		if made.MatchString(x.textOf(n.Fun)) {
			return false
		}
		x.extreme(n)
	}
	return true
}

// made are calls whose arguments are text for people, or a capacity.
var made = regexp.MustCompile(`^(fmt\.(Errorf|Sprintf|Sprint)|errors\.New|make|slices\.(Grow|Clip))$`)

func (x *finder) variable(e ast.Expr) (types.Type, bool) {
	tv, ok := x.info.Types[e]
	return tv.Type, ok && tv.IsValue() && tv.Value == nil && !tv.IsNil()
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

func hasInfo(t types.Type, want types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&want != 0
}

// condition takes each part of it for true and for false.
func (x *finder) condition(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		x.condition(e.X)
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			x.condition(e.X)
			return
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			return // its parts come by themselves
		}
	}
	if t, ok := x.variable(e); ok && isBool(t) {
		text := x.textOf(e)
		x.around(e, "mutCond(%d, %d, ", ")", x.place(e, "true: "+text), x.place(e, "false: "+text))
	}
}

func (x *finder) binary(e *ast.BinaryExpr) {
	var name string
	want := types.IsOrdered
	switch e.Op {
	case token.LAND, token.LOR:
		x.condition(e.X)
		x.condition(e.Y)
		return
	case token.LSS:
		name = "mutLess"
	case token.GTR:
		name = "mutAtMost" // a > b is !(a <= b)
	case token.LEQ:
		name = "mutAtMost"
	case token.GEQ:
		name = "mutLess"
	case token.ADD:
		name, want = "mutAdd", types.IsNumeric
	case token.SUB:
		name, want = "mutSub", types.IsNumeric
	default:
		return
	}
	_, ok := x.variable(e)
	left, right := x.info.Types[e.X].Type, x.info.Types[e.Y].Type
	if !ok || !hasInfo(left, want) || !hasInfo(right, want) {
		return
	}
	not := ""
	if e.Op == token.GTR || e.Op == token.GEQ {
		not = "!"
	}
	ed := x.around(e, not+name+"(%d, ", ")", x.place(e, "other "+e.Op.String()+": "+x.textOf(e)))
	ed.at, ed.n, ed.token = x.offset(e.OpPos), len(e.Op.String()), ","
}

// extreme takes min for max.
func (x *finder) extreme(e *ast.CallExpr) {
	id, ok := e.Fun.(*ast.Ident)
	if !ok || id.Name != "min" && id.Name != "max" || len(e.Args) < 2 || e.Ellipsis.IsValid() {
		return
	}
	if _, builtin := x.info.Uses[id].(*types.Builtin); !builtin {
		return
	}
	if _, ok := x.variable(e); !ok {
		return
	}
	name := map[string]string{"min": "mutMin", "max": "mutMax"}[id.Name]
	ed := x.around(e, "", "", x.place(e, "other "+id.Name+": "+x.textOf(e)))
	ed.at, ed.n, ed.token = x.offset(id.Pos()), x.offset(e.Lparen)+1-x.offset(id.Pos()), name+"(%d, "
}

// result is one more, zero or no error; a truth is a condition.
func (x *finder) result(e ast.Expr) {
	t, ok := x.variable(e)
	if _, literal := e.(*ast.FuncLit); !ok || literal {
		return
	}
	if _, tuple := t.(*types.Tuple); tuple {
		return
	}
	if c, literal := e.(*ast.CompositeLit); literal && len(c.Elts) == 0 {
		return // is zero
	}
	if isBool(t) {
		x.condition(e)
	} else if hasInfo(t, types.IsNumeric) {
		x.around(e, "mutMore(%d, ", ")", x.place(e, "one more: "+x.textOf(e)))
	} else {
		x.around(e, "mutZero(%d, ", ")", x.place(e, "zero result: "+x.textOf(e)))
	}
}

// literal leaves fields out.
func (x *finder) literal(c *ast.CompositeLit) {
	if t, ok := x.info.Types[c]; !ok || t.Type == nil {
		return
	} else if _, structure := t.Type.Underlying().(*types.Struct); !structure {
		return
	}
	for _, el := range c.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		_, variable := x.variable(kv.Value)
		if _, literal := kv.Value.(*ast.FuncLit); variable && !literal {
			x.around(kv.Value, "mutZero(%d, ", ")", x.place(kv, "zero field: "+x.textOf(kv)))
		}
	}
}

// idle are calls whose absence no test should have to see: they are for people, or for the
// race detector.
var idle = regexp.MustCompile(`(?i)(\blog\b|logger|events?|stats|metrics|traces?|spans?)\.|\.(R?Unlock|R?Lock|Done|Stop|close|Close)\(|^(cancel|stop|panic|close)\(`)

// statements leaves each of them out.
func (x *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || x.blank(s) {
				continue
			}
		case *ast.ExprStmt, *ast.DeferStmt:
			if idle.MatchString(x.textOf(s)) {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok != token.BREAK && s.Tok != token.CONTINUE {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
		case *ast.ReturnStmt:
			continue
		default:
			continue
		}
		x.around(s, "if !mut(%d) { ", " }", x.place(s, "without: "+x.textOf(s)))
	}
}

// blank says whether the statement assigns nothing, or to what is used for people only.
func (x *finder) blank(s *ast.AssignStmt) bool {
	id, ok := s.Lhs[0].(*ast.Ident)
	return ok && id.Name == "_" && len(s.Lhs) == 1
}

// changed is the file with all its edits in.
func (f *source) changed() []byte {
	type insertion struct {
		at, skip int
		text     string
		close    bool
		width    int // of the node
		order    int
	}
	var all []insertion
	for i, e := range f.edits {
		before, token := e.before, e.token
		ids := make([]any, len(e.places))
		for k, p := range e.places {
			ids[k] = p.id
		}
		if strings.Contains(token, "%d") {
			token = fmt.Sprintf(token, ids...)
		} else {
			before = fmt.Sprintf(before, ids...)
		}
		width := e.to - e.from
		all = append(all, insertion{e.from, 0, before, false, width, i}, insertion{e.to, 0, e.after, true, width, i})
		if e.n > 0 {
			all = append(all, insertion{e.at, e.n, token, false, 0, i})
		}
	}
	slices.SortStableFunc(all, func(a, b insertion) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.close != b.close: // what ends here, before what begins
			return cmp.Compare(bit(b.close), bit(a.close))
		case a.close: // the inner one first
			return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(b.order, a.order))
		}
		return cmp.Or(cmp.Compare(b.width, a.width), cmp.Compare(a.order, b.order))
	})
	var out []byte
	done := 0
	for _, in := range all {
		out = append(append(out, f.text[done:in.at]...), in.text...)
		done = in.at + in.skip
	}
	return append(out, f.text[done:]...)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
