package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAChartIsWellFormedAndHasItsTitlesTicksAndPoints(t *testing.T) {
	c := Chart{Title: "rate & <load>", XTitle: "callers", YTitle: "numbers a second", Series: []Series{
		{"next", []Point{{1, 20_000}, {64, 1e6}, {4096, 3.5e6}, {0, 5}}}, {"router", []Point{{1, 9000}, {4096, 1e6}}}}}
	svg, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	circles, text := 0, ""
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "circle" {
				circles++
			}
		case xml.CharData:
			text += string(token) + "\n"
		}
	}
	if circles != 5 {
		t.Errorf("drew %d points, want 5: a point at 0 has no place on the axis", circles)
	}
	for _, want := range []string{"rate & <load>", "callers", "numbers a second", "next", "router", "1\n", "10k\n", "1M\n", "10M\n", "1k\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the text:\n%s", want, text)
		}
	}
}

func TestPointsLieWhereTheAxesSay(t *testing.T) {
	svg, err := Chart{Series: []Series{{"a", []Point{{1, 1}, {100, 100}}}}}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`cx="86.0" cy="342.0"`, `cx="616.0" cy="44.0"`} { // the corners of the plot
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

func TestAChartWithoutPointsIsRefused(t *testing.T) {
	if _, err := (Chart{Series: []Series{{"a", []Point{{0, 1}}}}}).SVG(); !errors.Is(err, ErrNoPoints) {
		t.Errorf("got %v, want %v", err, ErrNoPoints)
	}
}
