// Command release builds the archives of a version: one for each platform, with the binaries, the license, an SBOM
// of what the binaries were made from, and the checksums of all archives. The same commit and the same Go give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// errRelease: the version cannot be built as it was asked for.
var errRelease = errors.New("release")

const module = "github.com/seqsvr/seqsvr"

// options say what to build.
type options struct {
	version, commit string
	date            time.Time // of the commit, and of every file
	platforms       []string  // linux/amd64
	commands        []string
	root, out       string
}

func main() {
	var o options
	flag.StringVar(&o.version, "version", "dev", "the version")
	flag.StringVar(&o.commit, "commit", "unknown", "the commit")
	date := flag.String("date", "", "time of the commit, RFC 3339")
	platforms := flag.String("platforms", "linux/amd64", "what to build for, OS/ARCH and more of them after commas")
	flag.StringVar(&o.root, "root", ".", "the source")
	flag.StringVar(&o.out, "out", "bin/release", "folder of the archives")
	flag.Parse()
	o.platforms, o.commands = strings.Split(*platforms, ","), []string{"allocsvr", "router", "seqctl", "storesvr"}
	var err error
	if o.date, err = time.Parse(time.RFC3339, *date); err != nil {
		err = fmt.Errorf("%w: -date %q: expected a time such as 2026-01-31T12:00:00Z", errRelease, *date)
	} else {
		err = o.build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// build makes all archives, and their checksums as sha256sum -c reads them.
func (o options) build() error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, platform := range o.platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok || goos == "" || goarch == "" {
			return fmt.Errorf("%w: platform %q: expected OS/ARCH, such as linux/amd64", errRelease, platform)
		}
		name := fmt.Sprintf("seqsvr-%s-%s-%s", o.version, goos, goarch)
		body, err := o.archive(name, goos, goarch)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.out, name+".tar.gz"), body, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s.tar.gz\n", sha256.Sum256(body), name)
	}
	return os.WriteFile(filepath.Join(o.out, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// archive builds the commands for a platform, and packs them.
func (o options) archive(name, goos, goarch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at := module + "/internal/base/version."
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X " + at + "Version=" + o.version + " -X " + at + "Commit=" + o.commit + " -X " + at + "Date=" + o.date.Format(time.RFC3339), "-o", dir + "/"}
	for _, command := range o.commands {
		args = append(args, "./cmd/"+command)
	}
	build := exec.Command("go", args...)
	build.Dir, build.Env = o.root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+goos, "GOARCH="+goarch)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s/%s: %w: %s", errRelease, goos, goarch, err, out)
	}
	files, modules := map[string][]byte{}, map[string]*debug.Module{}
	for _, command := range o.commands {
		info, err := buildinfo.ReadFile(filepath.Join(dir, command))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errRelease, command, err)
		}
		modules["stdlib"] = &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range info.Deps {
			modules[m.Path] = m
		}
		if files["bin/"+command], err = os.ReadFile(filepath.Join(dir, command)); err != nil {
			return nil, err
		}
	}
	for _, file := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		if files[file], err = os.ReadFile(filepath.Join(o.root, file)); err != nil {
			return nil, err
		}
	}
	if files["sbom.cdx.json"], err = o.sbom(modules); err != nil {
		return nil, err
	}
	return o.pack(name, files)
}

// component is a module in the SBOM.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// sbom lists the modules that go version -m shows of the binaries, as CycloneDX 1.5.
func (o options) sbom(modules map[string]*debug.Module) ([]byte, error) {
	parts := []component{}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	body, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp": o.date.UTC().Format(time.RFC3339),
			"component": component{"application", module, o.version, "pkg:golang/" + module + "@" + o.version},
		},
		"components": parts,
	}, "", "  ")
	return append(body, '\n'), err
}

// pack makes an archive whose bytes depend on the files, the name and the date alone.
func (o options) pack(name string, files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o644)
		if strings.HasPrefix(file, "bin/") {
			mode = 0o755
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + file, Size: int64(len(files[file])), Mode: mode, ModTime: o.date.UTC(), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[file]); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), zip.Close()) // in this order, and before the bytes are taken
	return out.Bytes(), err
}
