package deploy

import (
	"crypto/x509"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// The parts of other projects' resources that ours use, decoded strictly.
type (
	certificate struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			IsCA        bool   `json:"isCA"`
			CommonName  string `json:"commonName"`
			SecretName  string `json:"secretName"`
			Duration    metav1.Duration
			RenewBefore metav1.Duration `json:"renewBefore"`
			URIs        []string        `json:"uris"`
			DNSNames    []string        `json:"dnsNames"`
			Usages      []string        `json:"usages"`
			PrivateKey  struct {
				Algorithm      string `json:"algorithm"`
				Size           int    `json:"size"`
				RotationPolicy string `json:"rotationPolicy"`
			} `json:"privateKey"`
			IssuerRef struct {
				Name string `json:"name"`
				Kind string `json:"kind"`
			} `json:"issuerRef"`
		} `json:"spec"`
	}
	issuer struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			SelfSigned *struct{} `json:"selfSigned"`
			CA         *struct {
				SecretName string `json:"secretName"`
			} `json:"ca"`
		} `json:"spec"`
	}
	spiffeID struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			SpiffeIDTemplate  string               `json:"spiffeIDTemplate"`
			DNSNameTemplates  []string             `json:"dnsNameTemplates"`
			NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
			PodSelector       metav1.LabelSelector `json:"podSelector"`
		} `json:"spec"`
	}
)

func init() {
	kinds["cert-manager.io/v1 Certificate"] = func() any { return new(certificate) }
	kinds["cert-manager.io/v1 Issuer"] = func() any { return new(issuer) }
	kinds["spire.spiffe.io/v1alpha1 ClusterSPIFFEID"] = func() any { return new(spiffeID) }
}

// roles of the workloads, and the host that others dial them by.
var roles = map[string]struct {
	role auth.Role
	host string
}{
	"storesvr": {auth.Store, "storesvr-0.storesvr"}, "allocsvr": {auth.Alloc, "allocsvr-2.allocsvr"}, "router": {auth.Router, "router.seqsvr"},
}

// manifest decodes a file of deploy/kubernetes.
func manifest(t *testing.T, name string) []any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "deploy/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, name, text)
}

// checkIdentity holds that a certificate of the URI and the names is the role's, in the
// cluster of the manifests, and good for the host.
func checkIdentity(t *testing.T, what string, uris, names []string) {
	t.Helper()
	cert := &x509.Certificate{DNSNames: names} // and no subject
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		cert.URIs = append(cert.URIs, uri)
	}
	id, err := auth.IdentityOf(cert, "seqsvr")
	if err != nil || id.Role != roles[what].role {
		t.Errorf("%s: %q is %+v, %v; want role %s", what, uris, id, err, roles[what].role)
	}
	host := roles[what].host
	if id.Role == auth.Alloc { // has a certificate of its own
		host = id.Name + ".allocsvr"
	}
	hosts := []string{host}
	if id.Role != auth.Router {
		hosts = append(hosts, host+".seqsvr.svc") // since addresses are whole
	}
	for _, host := range hosts {
		if err := cert.VerifyHostname(host); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCertificatesHaveTheRolesAndNamesOfTheirTiers(t *testing.T) {
	issuers, found := map[string]bool{}, map[string]bool{}
	var all []*certificate
	for _, o := range manifest(t, "secure/certificates.yaml") {
		switch o := o.(type) {
		case *issuer:
			issuers[o.Name] = true
		case *certificate:
			all = append(all, o)
		}
	}
	for _, c := range all {
		if !issuers[c.Spec.IssuerRef.Name] || c.Spec.SecretName == "" {
			t.Errorf("%s: issuer %q, secret %q", c.Name, c.Spec.IssuerRef.Name, c.Spec.SecretName)
		}
		name, _, _ := strings.Cut(c.Name, "-") // AllocSvr have one each
		if _, tier := roles[name]; tier {
			found[name] = true
			checkIdentity(t, name, c.Spec.URIs, c.Spec.DNSNames)
			if name == "allocsvr" && !slices.Equal(c.Spec.URIs, []string{"spiffe://seqsvr/alloc/" + c.Name}) {
				t.Errorf("%s: %q", c.Name, c.Spec.URIs)
			}
			if !slices.Contains(c.Spec.Usages, "server auth") || !slices.Contains(c.Spec.Usages, "client auth") {
				t.Errorf("%s: usages %q", c.Name, c.Spec.Usages)
			}
			if c.Spec.RenewBefore.Duration <= 0 || c.Spec.RenewBefore.Duration >= c.Spec.Duration.Duration {
				t.Errorf("%s: %v, renewed %v before its end", c.Name, c.Spec.Duration, c.Spec.RenewBefore)
			}
		}
	}
	if len(found) != len(roles) {
		t.Errorf("certificates of %v, want all of %v", found, roles)
	}
}

func TestIdentitiesOfSPIREAreThoseOfTheTiers(t *testing.T) {
	expand := func(text, pod string) string {
		var out strings.Builder
		made, err := template.New("").Option("missingkey=error").Parse(text)
		if err == nil {
			err = made.Execute(&out, map[string]any{"TrustDomain": "seqsvr", "PodMeta": map[string]string{"Name": pod, "Namespace": "seqsvr"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	all := manifest(t, "spire/identities.yaml")
	if len(all) != len(roles) {
		t.Errorf("%d identities, want %d", len(all), len(roles))
	}
	for _, o := range all {
		o := o.(*spiffeID)
		what := o.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"]
		pod, _, _ := strings.Cut(roles[what].host, ".")
		var names []string
		for _, text := range o.Spec.DNSNameTemplates {
			names = append(names, expand(text, pod))
		}
		checkIdentity(t, what, []string{expand(o.Spec.SpiffeIDTemplate, pod)}, names)
	}
}

func TestTheSecureOverlayTellsEachDaemonWhatIsMounted(t *testing.T) {
	all := objects(t, "secure", render(t, "secure"))
	secrets := map[string]bool{"policy": true}
	for _, o := range all {
		if c, ok := o.(*certificate); ok {
			secrets[c.Spec.SecretName] = true
		}
	}
	made := t.TempDir() // what the secrets have
	run(t, made, "seqctl auth ca --cluster seqsvr\n"+
		strings.Join(commented(t, "deploy/kubernetes/secure/kustomization.yaml", "seqctl auth", "printf"), "\n")+
		"\nseqctl auth try --policy policy.yaml --as operator/seqctl Admin.Drain; seqctl auth try --policy policy.yaml --token-file chat.token user:take")
	for _, w := range workloads(all) {
		c := w.pod.Spec.Containers[0]
		checkPod(t, "secure "+w.name, w.pod.Spec)
		pod := w.name + "-0"
		p := processOf("secure "+w.name, pod, c)
		own := string(roles[w.name].role) + "-" + pod
		run(t, made, "seqctl auth cert --role "+string(roles[w.name].role)+" --name "+pod+" --hosts a && cp ca.pem ca.crt && mv "+own+".pem tls.crt && mv "+own+"-key.pem tls.key")
		if p.env["SEQ_AUTH"] != "require" || p.env["SEQ_CLUSTER"] != "seqsvr" {
			t.Errorf("%s: auth %q of cluster %q", w.name, p.env["SEQ_AUTH"], p.env["SEQ_CLUSTER"])
		}
		for setting, file := range map[string]string{"SEQ_TLS_CERT": "tls.crt", "SEQ_TLS_KEY": "tls.key", "SEQ_TLS_CA": "ca.crt", "SEQ_POLICY": "policy.yaml"} {
			dir, name := filepath.Split(p.env[setting])
			if name != file || !mounts(w.pod.Spec, strings.TrimSuffix(dir, "/"), secrets) {
				t.Errorf("%s: %s is %q: no such file of a secret is mounted with mode 0440", w.name, setting, p.env[setting])
			}
			p.env[setting] = filepath.Join(made, file)
		}
		p.check(t)
	}
}

// commented are the commands in a file's comments that begin with one of the words.
func commented(t *testing.T, name string, words ...string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		command := strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if strings.HasPrefix(line, "#") && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(command, w) }) {
			out = append(out, command)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: no commands of %q in its comments", name, words)
	}
	return out
}

// run runs a script in a directory, with our binaries.
func run(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(daemon(t, "seqctl"))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func TestTheSecureComposeFileGivesEachDaemonWhatItsCommandsMake(t *testing.T) {
	plain, secured := readCompose(t, "compose.yaml"), readCompose(t, "secure.yaml")
	dir := t.TempDir()
	run(t, dir, strings.Join(commented(t, "deploy/compose/secure.yaml", "seqctl auth", "mkdir"), "\n"))
	for name, service := range plain.Services {
		process := service.container(name)
		added, there := secured.Services[name]
		if there == slices.Contains(process.args, "init") {
			t.Errorf("%s: there: %v", name, there)
		}
		if !there {
			continue
		}
		if !slices.Equal(added.Volumes, []string{"./secure:/secure:ro"}) {
			t.Errorf("%s mounts %q", name, added.Volumes)
		}
		for key, value := range added.Environment {
			if rest, ok := strings.CutPrefix(value, "/secure/"); ok {
				value = filepath.Join(dir, "secure", rest)
				if _, err := os.Stat(value); err != nil {
					t.Errorf("%s: %s: %v", name, key, err)
				}
			}
			process.env[key] = value
		}
		process.check(t)
	}
	for name := range secured.Services {
		if _, there := plain.Services[name]; !there {
			t.Errorf("%s is not in compose.yaml", name)
		}
	}
}

// mounts tells whether one of the secrets is mounted there, for the group alone.
func mounts(pod corev1.PodSpec, dir string, secrets map[string]bool) bool {
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if m.MountPath == dir && v.Name == m.Name && v.Secret != nil && secrets[v.Secret.SecretName] {
				return pod.SecurityContext.FSGroup != nil && v.Secret.DefaultMode != nil && *v.Secret.DefaultMode == 0o440
			}
			if rest, below := strings.CutPrefix(dir, m.MountPath+"/"); below && v.Name == m.Name && v.Projected != nil {
				return pod.SecurityContext.FSGroup != nil && v.Projected.DefaultMode != nil && *v.Projected.DefaultMode == 0o440 &&
					slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return projects(s.Secret, rest, secrets) })
			}
		}
	}
	return false
}

// projects says whether a secret has all files of a certificate below the folder.
func projects(s *corev1.SecretProjection, dir string, secrets map[string]bool) bool {
	if s == nil || !secrets[s.Name] || len(s.Items) != 3 {
		return false
	}
	for _, i := range s.Items {
		if i.Path != dir+"/"+i.Key {
			return false
		}
	}
	return true
}

// may are the pods that policies must let into a port, by their labels.
var may = map[string][]string{
	"storesvr grpc": {"app.kubernetes.io/name=allocsvr", "app.kubernetes.io/name=storesvr", "seqsvr/tools=true"},
	"allocsvr grpc": {"app.kubernetes.io/name=allocsvr", "app.kubernetes.io/name=router", "seqsvr/caller=true", "seqsvr/tools=true"},
	"router grpc":   {"seqsvr/caller=true", "seqsvr/tools=true"},
	"router http":   {"seqsvr/caller=true", "seqsvr/tools=true"},
	"gossip-tcp":    {"seqsvr/gossip=true"},
	"gossip-udp":    {"seqsvr/gossip=true"},
	"admin":         {""}, // everybody
}

func TestPoliciesCoverEveryPortAndLetInThoseWhoNeedIt(t *testing.T) {
	all := base(t)
	for _, w := range workloads(all) {
		for _, port := range w.pod.Spec.Containers[0].Ports {
			want, listed := may[w.name+" "+port.Name]
			if !listed {
				want = may[port.Name]
			}
			if got := letIn(all, w, port); want == nil || !slices.Equal(got, want) {
				t.Errorf("%s, port %s: lets in %q, want %q", w.name, port.Name, got, want)
			}
		}
	}
}

// letIn are the labels of those whom the policies of a pod let into a port; "" is everybody.
func letIn(all []any, w workload, port corev1.ContainerPort) (out []string) {
	for _, o := range all {
		policy, ok := o.(*networkingv1.NetworkPolicy)
		if !ok || selected([]workload{w}, policy.Spec.PodSelector.MatchLabels) == 0 {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				protocol := corev1.ProtocolTCP
				if p.Protocol != nil {
					protocol = *p.Protocol
				}
				return p.Port.IntVal == port.ContainerPort && (protocol == port.Protocol || port.Protocol == "" && protocol == corev1.ProtocolTCP)
			}) {
				continue
			}
			if len(rule.From) == 0 {
				out = append(out, "")
			}
			for _, from := range rule.From {
				for key, value := range from.PodSelector.MatchLabels {
					out = append(out, key+"="+value)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
