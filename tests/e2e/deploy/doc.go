// Package deploy checks what is in deploy/: manifests decode strictly into the types of
// Kubernetes, units pass systemd's own checks, the compose file and the manifests start
// daemons with settings that these accept. It has tests only.
package deploy
