package own

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// errGoBench: a Go benchmark did not print what was expected.
var errGoBench = errors.New("go benchmark: output not understood")

// GoBench is the compiled benchmarks of a package of this tree.
type GoBench struct{ binary, dir string }

// Compile builds the benchmarks of a package, such as ./tests/bench, into dir. root is
// the folder of the module.
func Compile(ctx context.Context, root, pkg, dir string) (*GoBench, error) {
	binary := filepath.Join(dir, filepath.Base(pkg)+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the benchmarks of %s: %w: %s", pkg, err, out)
	}
	return &GoBench{binary, dir}, nil
}

// Run runs the benchmarks that match and gives the metrics of the last, by unit, such
// as "ns/op". Temporary files lie in the folder given to Compile.
func (g *GoBench) Run(ctx context.Context, pattern, benchtime string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, g.binary, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+g.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s: %w: %.1000s", pattern, err, out)
	}
	return parseGoBench(string(out))
}

func parseGoBench(out string) (map[string]float64, error) {
	var last map[string]float64
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		last = map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			x, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%w: %q", errGoBench, lines.Text())
			}
			last[fields[i+1]] = x
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%w: %.500q", errGoBench, out)
	}
	return last, nil
}
