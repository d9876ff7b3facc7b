package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// box is a room in the picture of docs/concepts.md: its name, and the line and the columns of
// its upper edge.
type box struct {
	name           string
	line, from, to int
}

// arrow is one that is drawn, from a room to the one that it imports.
type arrow struct{ from, to string }

// picture reads the boxes and the arrows of a drawing. An arrow is a column of "|" that begins below
// the lower edge of a box and ends with a "v" above the upper edge of another.
func picture(lines []string) (boxes map[string]box, arrows []arrow) {
	at := func(line, column int) byte {
		if line < 0 || line >= len(lines) || column >= len(lines[line]) {
			return ' '
		}
		return lines[line][column]
	}
	boxes = map[string]box{}
	edge := regexp.MustCompile(`\+-+\+`)
	name := regexp.MustCompile(`^\| ([a-z]+) +\|$`)
	lower := map[[2]int]string{} // the room whose lower edge is at a line and column
	for i, line := range lines {
		for _, span := range edge.FindAllStringIndex(line, -1) {
			if i+3 >= len(lines) || len(lines[i+1]) < span[1] || len(lines[i+3]) < span[1] {
				continue
			}
			found := name.FindStringSubmatch(lines[i+1][span[0]:span[1]])
			if found == nil || !edge.MatchString(lines[i+3][span[0]:span[1]]) {
				continue
			}
			boxes[found[1]] = box{found[1], i, span[0], span[1]}
			for column := span[0]; column < span[1]; column++ {
				lower[[2]int{i + 3, column}] = found[1]
			}
		}
	}
	for i, line := range lines {
		for column := range line {
			if line[column] != 'v' || at(i-1, column) != '|' {
				continue
			}
			up := i - 1
			for at(up, column) == '|' {
				up--
			}
			for _, b := range boxes {
				if from := lower[[2]int{up, column}]; from != "" && b.line == i+1 && b.from <= column && column < b.to {
					arrows = append(arrows, arrow{from, b.name})
				}
			}
		}
	}
	return boxes, arrows
}

// drawn is the picture of docs/concepts.md, and the room of each folder by the table below it.
func drawn(t *testing.T) (boxes map[string]box, arrows []arrow, room func(folder string) string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/concepts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```\n+-")
	drawing, rest, _ := strings.Cut("+-"+rest, "```\n")
	_, table, _ := strings.Cut(rest, "| room | folders |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rooms := map[string]string{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(row), " | "); len(cells) == 2 {
			for folder := range strings.SplitSeq(strings.TrimSuffix(cells[1], " |"), ", ") {
				rooms[folder] = strings.TrimPrefix(cells[0], "| ")
			}
		}
	}
	boxes, arrows = picture(strings.Split(drawing, "\n"))
	return boxes, arrows, func(folder string) string {
		for ; folder != "."; folder = filepath.ToSlash(filepath.Dir(folder)) {
			if rooms[folder] != "" {
				return rooms[folder]
			}
		}
		return ""
	}
}

func TestThePictureOfTheRoomsIsTrueToTheImports(t *testing.T) {
	boxes, arrows, room := drawn(t)
	if len(boxes) != 11 || len(arrows) < 10 {
		t.Fatalf("docs/concepts.md: found %d rooms and %d arrows: %v %v", len(boxes), len(arrows), boxes, arrows)
	}
	there := map[arrow]bool{}
	for folder, targets := range imports(t) {
		if under(folder, "tests") || under(folder, "examples") || under(folder, "internal/arch") || under(folder, "deploy") {
			continue
		}
		from := room(folder)
		if _, ok := boxes[from]; !ok {
			t.Errorf("%s is in no room of docs/concepts.md", folder)
			continue
		}
		for _, target := range targets {
			ours, ok := strings.CutPrefix(target, module)
			to := room(ours)
			if !ok || to == from || to == "" {
				continue
			}
			there[arrow{from, to}] = true
			if boxes[from].line >= boxes[to].line {
				t.Errorf("%s imports %s: room %s is not above room %s in the picture of docs/concepts.md", folder, ours, from, to)
			}
		}
	}
	for _, a := range arrows {
		if !there[a] {
			t.Errorf("docs/concepts.md draws an arrow from %s to %s, and there is no such import", a.from, a.to)
		}
	}
}

func TestAPictureIsReadAsItIsDrawn(t *testing.T) {
	boxes, arrows := picture([]string{
		"+------+ +------+",
		"| a    | | b    |",
		"| text | | text |",
		"+------+ +------+",
		"  |  |     |",
		"  |  v     v",
		"  | +-----------+",
		"  | | c         |",
		"  | | text      |",
		"  | +-----------+",
		"  |       |",
		"  v       v",
		"+---------------+",
		"| d             |",
		"| text          |",
		"+---------------+",
	})
	got := map[arrow]bool{}
	for _, a := range arrows {
		got[a] = true
	}
	if len(boxes) != 4 || len(got) != 4 || !got[arrow{"a", "c"}] || !got[arrow{"a", "d"}] || !got[arrow{"b", "c"}] || !got[arrow{"c", "d"}] {
		t.Errorf("found rooms %v and arrows %v", boxes, arrows)
	}
}
