package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAReleaseIsTheSameTwice builds one command for this platform twice, and looks into the archive.
func TestAReleaseIsTheSameTwice(t *testing.T) {
	var bodies [2][]byte
	name := fmt.Sprintf("seqsvr-v9-%s-%s", runtime.GOOS, runtime.GOARCH)
	for i := range bodies {
		o := options{version: "v9", commit: "abc", date: time.Unix(1700000000, 0), platforms: []string{runtime.GOOS + "/" + runtime.GOARCH},
			commands: []string{"storesvr"}, root: "../..", out: t.TempDir()}
		if err := o.build(); err != nil {
			t.Fatal(err)
		}
		var err error
		if bodies[i], err = os.ReadFile(filepath.Join(o.out, name+".tar.gz")); err != nil {
			t.Fatal(err)
		}
		sums, err := os.ReadFile(filepath.Join(o.out, "SHA256SUMS"))
		if want := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(bodies[i]), name); err != nil || string(sums) != want {
			t.Errorf("checksums %q (%v), want %q", sums, err, want)
		}
	}
	if !bytes.Equal(bodies[0], bodies[1]) {
		t.Error("two releases of one commit differ")
	}
	zip, err := gzip.NewReader(bytes.NewReader(bodies[0]))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	var names []string
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.ModTime.Unix() != 1700000000 {
			t.Errorf("%s is of %v, want the time of the commit", head.Name, head.ModTime)
		}
		names = append(names, head.Name)
		if files[head.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, file := range []string{"CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "bin/storesvr", "sbom.cdx.json"} {
		want = append(want, name+"/"+file)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	var sbom struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(files[name+"/sbom.cdx.json"], &sbom); err != nil || sbom.BOMFormat != "CycloneDX" {
		t.Errorf("the SBOM is %s (%v)", files[name+"/sbom.cdx.json"], err)
	}
	has := func(path string) bool {
		return slices.ContainsFunc(sbom.Components, func(c component) bool {
			return c.Name == path && c.Version != "" && c.PURL == "pkg:golang/"+path+"@"+c.Version
		})
	}
	if !has("stdlib") || !has("google.golang.org/grpc") || !has("go.etcd.io/bbolt") {
		t.Errorf("the SBOM has %v", sbom.Components)
	}
	binary := filepath.Join(t.TempDir(), "storesvr")
	if err := os.WriteFile(binary, files[name+"/bin/storesvr"], 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), "v9") {
		t.Errorf("the binary says %q (%v), want version v9", out, err)
	}
}

func TestAPlatformThatIsNoneIsRefusedByName(t *testing.T) {
	err := options{platforms: []string{"linux"}, out: t.TempDir()}.build()
	if !errors.Is(err, errRelease) || !strings.Contains(err.Error(), `platform "linux": expected OS/ARCH`) {
		t.Errorf("got %v", err)
	}
}
