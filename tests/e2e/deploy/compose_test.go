package deploy

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func newReader(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }

// composeFile is the part of the compose specification that our file uses. Decoding
// is strict, so what is not here is a mistake or a new line below.
type composeFile struct {
	Name     string
	Services map[string]composeService
	Volumes  map[string]any
	X        map[string]any `yaml:",inline"` // x-...: anchors only
}

type composeService struct {
	Image           string
	Command         []string
	Restart         string
	StopGracePeriod string `yaml:"stop_grace_period"`
	DependsOn       any    `yaml:"depends_on"`
	Environment     map[string]string
	Volumes         []string
	Ports           []string
	Profiles        []string
	Healthcheck     any
}

// container is the service as a process; what the image starts by itself is added.
func (s composeService) container(name string) container {
	image, _, _ := strings.Cut(s.Image, ":")
	command := s.Command
	if image == "seqsvr/storesvr" && command == nil {
		command = []string{"serve"}
	}
	return container{where: name, image: image, args: command, env: s.Environment}
}

func readCompose(t *testing.T, name string) (file composeFile) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "deploy/compose", name))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheComposeFilesAreWholeClustersWhoseDaemonsTakeTheirSettings(t *testing.T) {
	checkCompose(t, "compose.yaml", map[string]int{"seqsvr/storesvr": 3, "seqsvr/allocsvr": 3, "seqsvr/router": 2, "seqsvr/seqctl": 1})
	checkCompose(t, "etcd.yaml", map[string]int{etcdImage: 3, "seqsvr/storesvr": 0, "seqsvr/allocsvr": 3, "seqsvr/router": 2, "seqsvr/seqctl": 1})
}

func checkCompose(t *testing.T, name string, want map[string]int) {
	t.Helper()
	file := readCompose(t, name)
	for key := range file.X {
		if !strings.HasPrefix(key, "x-") {
			t.Errorf("%q is no key of a compose file", key)
		}
	}
	got := map[string]int{}
	for name, service := range file.Services {
		process := service.container(name)
		if !slices.Contains(process.args, "init") {
			got[process.image]++
		}
		process.check(t)
		for _, on := range dependencies(service.DependsOn) {
			if _, ok := file.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, on)
			}
		}
		for _, volume := range service.Volumes {
			volume, _, _ = strings.Cut(volume, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s mounts %s, which is not there", name, volume)
			}
		}
	}
	for image, n := range want {
		if got[image] != n {
			t.Errorf("%s: %d services of %s, want %d", name, got[image], image, n)
		}
	}
}

func dependencies(of any) (names []string) {
	switch of := of.(type) {
	case []any:
		for _, name := range of {
			names = append(names, name.(string))
		}
	case map[string]any:
		for name := range of {
			names = append(names, name)
		}
	}
	return names
}
