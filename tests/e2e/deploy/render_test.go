package deploy

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// render is what `kubectl kustomize` prints of a folder of deploy/kubernetes: the code is the
// same, and every machine has it.
func render(t *testing.T, folder string) []byte {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(repo, "deploy/kubernetes", folder))
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return text
}

// serviceMonitor has the fields of that kind that are used here, because its Go types come with a whole
// operator. A misspelt field is an error, as in the other kinds.
type serviceMonitor struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Spec             struct {
		JobLabel string `json:"jobLabel"`
		Selector struct {
			MatchExpressions []struct{ Key, Operator string } `json:"matchExpressions"`
		}
		Endpoints []struct {
			Port, Interval string
			Relabelings    []struct {
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			}
		}
	}
}

func TestPrometheusFindsEveryDaemonByTheJobOfTheAlerts(t *testing.T) {
	sets := workloads(base(t))
	ports := map[string]int32{}
	for _, w := range sets {
		for _, p := range w.pod.Spec.Containers[0].Ports {
			if p.Name == "admin" {
				ports["seqsvr-"+w.name] = p.ContainerPort
			}
		}
	}
	monitors := 0
	for _, o := range objects(t, "monitoring", render(t, "monitoring")) {
		switch o := o.(type) {
		case *corev1.Service:
			job := o.Labels["seqsvr-job"]
			if len(o.Spec.Ports) != 1 || o.Spec.Ports[0].Name != "admin" || o.Spec.Ports[0].Port != ports[job] || selected(sets, o.Spec.Selector) != 1 {
				t.Errorf("service %s of job %q: %+v, want the admin port %d of one workload", o.Name, job, o.Spec, ports[job])
			}
			delete(ports, job)
		case *serviceMonitor:
			monitors++
			if o.Spec.JobLabel != "seqsvr-job" || o.Spec.Selector.MatchExpressions[0].Key != "seqsvr-job" || o.Spec.Endpoints[0].Port != "admin" {
				t.Errorf("monitor: %+v", o.Spec)
			}
		}
	}
	if len(ports) != 0 || monitors != 1 {
		t.Errorf("%d monitors, and jobs that nobody scrapes: %v", monitors, ports)
	}
}
