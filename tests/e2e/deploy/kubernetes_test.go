package deploy

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// objects decodes every document, strictly: a misspelt key is an error here, and
// nothing at all in a cluster.
func objects(t *testing.T, where string, text []byte) (out []any) {
	t.Helper()
	docs := yaml.NewYAMLReader(newReader(text))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		var kind metav1.TypeMeta
		if err := sigsyaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		make, ok := kinds[kind.APIVersion+" "+kind.Kind]
		if !ok {
			t.Errorf("%s: a %s of %s is not known here", where, kind.Kind, kind.APIVersion)
			continue
		}
		object := make()
		if err := sigsyaml.UnmarshalStrict(doc, object); err != nil {
			t.Errorf("%s: %s: %v", where, kind.Kind, err)
		}
		out = append(out, object)
	}
}

var kinds = map[string]func() any{
	"v1 Namespace":                            func() any { return new(corev1.Namespace) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"apps/v1 StatefulSet":                     func() any { return new(appsv1.StatefulSet) },
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(serviceMonitor) },
}

// workload is what StatefulSet and Deployment have in common.
type workload struct {
	name     string
	replicas int32
	selector map[string]string
	pod      corev1.PodTemplateSpec
}

func workloads(objects []any) (out []workload) {
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			out = append(out, workload{o.Name, *o.Spec.Replicas, o.Spec.Selector.MatchLabels, o.Spec.Template})
		case *appsv1.Deployment:
			out = append(out, workload{o.Name, *o.Spec.Replicas, o.Spec.Selector.MatchLabels, o.Spec.Template})
		}
	}
	return out
}

// base reads all manifests of the base.
func base(t *testing.T) (all []any) {
	t.Helper()
	listed, err := os.ReadFile(filepath.Join(repo, "deploy/kubernetes/base/kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(repo, "deploy/kubernetes/base/*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(listed), "- "+name+"\n") {
			t.Errorf("%s is not among the resources of kustomization.yaml", name)
		}
		all = append(all, objects(t, name, text)...)
	}
	return all
}

func TestEveryManifestOfTheBaseDecodesStrictlyAndIsListed(t *testing.T) {
	checkCluster(t, "base", base(t), map[string]int32{"storesvr": 3, "allocsvr": 3, "router": 2})
}

func TestBaseAndOverlayRenderAndStartDaemonsThatTakeTheirSettings(t *testing.T) {
	for overlay, want := range map[string]map[string]int32{
		"base":        {"storesvr": 3, "allocsvr": 3, "router": 2},
		"development": {"storesvr": 3, "allocsvr": 1, "router": 1},
		"gossip-keys": {"storesvr": 3, "allocsvr": 3, "router": 2},
		"etcd":        {"etcd": 3, "storesvr": 0, "allocsvr": 3, "router": 2},
	} {
		text := render(t, overlay)
		all := objects(t, overlay, text)
		checkCluster(t, overlay, all, want)
		for _, w := range workloads(all) {
			checkGossipKeys(t, overlay+" "+w.name, w.pod.Spec, overlay == "gossip-keys")
		}
	}
}

// TestAClusterIsCalledByItsNamespaceAndItsAddressesAreWhole holds that two clusters in two namespaces have
// neither a name nor an address in common.
func TestAClusterIsCalledByItsNamespaceAndItsAddressesAreWhole(t *testing.T) {
	for _, overlay := range []string{"base", "development", "gossip-keys", "etcd", "secure"} {
		for _, w := range workloads(objects(t, overlay, render(t, overlay))) {
			if w.name == "etcd" {
				continue // knows its members by ids
			}
			for _, c := range append(w.pod.Spec.InitContainers, w.pod.Spec.Containers...) {
				checkNames(t, overlay+" "+w.name+" "+c.Name, c)
			}
		}
	}
}

func checkNames(t *testing.T, where string, c corev1.Container) {
	t.Helper()
	named, known := false, false
	for _, e := range c.Env {
		switch e.Name {
		case "POD_NAMESPACE":
			known = e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		case "SEQ_CLUSTER":
			named = known && e.Value == "$(POD_NAMESPACE)"
		case "SEQ_STORES", "SEQ_ALLOCS", "SEQ_ADVERTISE", "SEQ_GOSSIP_JOIN":
			for _, addr := range strings.Split(e.Value, ",") {
				if host, _, _ := strings.Cut(addr, ":"); host != "$(POD_IP)" && (!known || !strings.HasSuffix(host, ".$(POD_NAMESPACE).svc")) {
					t.Errorf("%s: %s is %q, expected names with the namespace, behind POD_NAMESPACE", where, e.Name, e.Value)
				}
			}
		}
	}
	if !named {
		t.Errorf("%s: the cluster is not called by the namespace", where)
	}
}

// checkCluster holds what no schema does: who selects whom, one disruption at a time,
// the pod security that the namespace asks for, and settings that the daemons take.
func checkCluster(t *testing.T, where string, all []any, replicas map[string]int32) {
	t.Helper()
	sets := workloads(all)
	got := map[string]int32{}
	for _, w := range sets {
		got[w.name] = w.replicas
		checkPod(t, where+" "+w.name, w.pod.Spec)
		for _, c := range append(w.pod.Spec.InitContainers, w.pod.Spec.Containers...) {
			processOf(where+" "+w.name+" "+c.Name, w.name+"-0", c).check(t)
		}
	}
	for name, want := range replicas {
		if got[name] != want {
			t.Errorf("%s: %s has %d replicas, want %d", where, name, got[name], want)
		}
	}
	budgets := 0
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Service:
			if selected(sets, o.Spec.Selector) == 0 {
				t.Errorf("%s: service %s selects no pod", where, o.Name)
			}
			if o.Spec.ClusterIP == "None" && !o.Spec.PublishNotReadyAddresses {
				t.Errorf("%s: headless service %s hides pods that start", where, o.Name)
			}
		case *policyv1.PodDisruptionBudget:
			budgets++
			if selected(sets, o.Spec.Selector.MatchLabels) != 1 || o.Spec.MaxUnavailable.IntValue() != 1 {
				t.Errorf("%s: budget %s: %+v", where, o.Name, o.Spec)
			}
		}
	}
	if budgets != len(sets) {
		t.Errorf("%s: %d budgets for %d workloads", where, budgets, len(sets))
	}
}

// checkGossipKeys holds that the daemon is told the file that is mounted, and that the
// mode is one that it takes.
func checkGossipKeys(t *testing.T, where string, pod corev1.PodSpec, want bool) {
	t.Helper()
	c := pod.Containers[0]
	told, mounted := "", ""
	for _, e := range c.Env {
		if e.Name == "SEQ_GOSSIP_KEYS_FILE" {
			told = filepath.Dir(e.Value)
		}
	}
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o007 != 0 {
			t.Errorf("%s: everybody may read the secret %s", where, v.Secret.SecretName)
		}
		for _, m := range c.VolumeMounts {
			if m.Name == v.Name {
				mounted = m.MountPath
			}
		}
	}
	if told != mounted || (told != "") != want {
		t.Errorf("%s: told the keys in %q, mounted at %q, wanted: %v", where, told, mounted, want)
	}
}

func selected(sets []workload, selector map[string]string) (n int) {
	for _, w := range sets {
		matches := len(selector) > 0
		for key, value := range selector {
			matches = matches && w.pod.Labels[key] == value
		}
		if matches {
			n++
		}
	}
	return n
}

func checkPod(t *testing.T, where string, pod corev1.PodSpec) {
	t.Helper()
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		t.Errorf("%s: the pod does not meet the restricted profile", where)
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil || len(s.Capabilities.Drop) != 1 {
			t.Errorf("%s: container %s does not meet the restricted profile", where, c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: container %s asks for no CPU or has no limit of memory", where, c.Name)
		}
	}
	for _, c := range pod.Containers {
		if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil {
			t.Errorf("%s: container %s lacks a probe", where, c.Name)
		}
	}
}

// processOf expands what the kubelet does.
func processOf(where, pod string, c corev1.Container) container {
	out := container{where: where, args: c.Args, env: map[string]string{}}
	out.image, _, _ = strings.Cut(c.Image, ":")
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			value = map[string]string{"metadata.name": pod, "metadata.namespace": "seqsvr", "status.podIP": "10.0.0.1"}[e.ValueFrom.FieldRef.FieldPath]
		}
		for name, known := range out.env {
			value = strings.ReplaceAll(value, "$("+name+")", known)
		}
		out.env[e.Name] = value
	}
	out.args = slices.Clone(out.args)
	for i := range out.args {
		for name, known := range out.env {
			out.args[i] = strings.ReplaceAll(out.args[i], "$("+name+")", known)
		}
	}
	return out
}
