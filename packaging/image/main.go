// Command image writes the container image of celld, for each architecture, as an OCI layout in a tar:
//
//	go -C packaging run ./image -out image.tar -version 0.1.0 -commit 1234 -date 2026-11-28T12:00:00Z amd64=PATH arm64=PATH
//
// It asks no registry: the image is the binary, the authorities that rediss:// trusts, a user, and a folder for files.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is that of the Dockerfile.
const user = 65532

// release is what the labels of the image say.
type release struct {
	version, commit string
	made            time.Time
}

func main() {
	var r release
	out := flag.String("out", "", "the tar to write")
	flag.StringVar(&r.version, "version", "", "version of celld")
	flag.StringVar(&r.commit, "commit", "", "commit that it was built from")
	date := flag.String("date", "", "when that was committed, as 2026-11-28T12:00:00Z")
	flag.Parse()
	var err error
	if r.made, err = time.Parse(time.RFC3339, *date); err == nil {
		r.made = r.made.UTC()
		err = write(*out, r, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the layout of an image for each binary, given as architecture=path.
func write(out string, r release, binaries []string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, binary := range binaries {
		arch, path, _ := strings.Cut(binary, "=")
		image, err := r.image(arch, path)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	dir, err := os.MkdirTemp("", "celld-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The layout's index has one entry, the index of the platforms, by the name of its version.
	whole, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})
	if err := whole.AppendIndex(index, name); err != nil {
		return err
	}
	return tarOf(dir, out, r.made)
}

// labels are the annotations that the OCI's specification names.
func (r release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title": "celld", "org.opencontainers.image.description": "rate limiter that Redis clients can ask",
		"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created": r.made.Format(time.RFC3339), "org.opencontainers.image.licenses": "MIT",
	}
}

// image makes a layer of its own for the binary, which alone differs between architectures and versions.
func (r release) image(arch, binary string) (v1.Image, error) {
	root, err := layer(r.root)
	if err != nil {
		return nil, err
	}
	program, err := layer(func(w *tar.Writer) error {
		text, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		return r.file(w, "celld", 0o755, text)
	})
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, root, program); err != nil {
		return nil, err
	}
	made, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := made.DeepCopy() // it names the layers that were added above
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: r.made}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/celld"}, WorkingDir: "/", Labels: r.labels(),
		ExposedPorts: map[string]struct{}{"6379/tcp": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/celld", "ping"}, Interval: 10 * time.Second, Timeout: 4 * time.Second,
			StartPeriod: 2 * time.Second},
	}
	return mutate.ConfigFile(image, config)
}

// root writes all but the binary.
func (r release) root(w *tar.Writer) error {
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a file of certificates cannot say that only some of an authority's are trusted
			continue
		}
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	for _, dir := range []string{"bin", "data", "etc", "etc/ssl", "etc/ssl/certs"} {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: r.made, Format: tar.FormatPAX}
		if dir == "data" {
			h.Uid, h.Gid = user, user
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
	}
	link := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/ratelimit", Linkname: "/celld", Mode: 0o777, ModTime: r.made,
		Format: tar.FormatPAX}
	if err := w.WriteHeader(link); err != nil { // manifests of envoyproxy/ratelimit name this command
		return err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/nologin\ncelld:x:%d:%d:celld:/data:/nologin\n", user, user)
	group := fmt.Sprintf("root:x:0:\ncelld:x:%d:\n", user)
	for _, f := range [][2]string{
		{"etc/group", group}, {"etc/passwd", passwd}, {"etc/ssl/certs/ca-certificates.crt", authorities.String()},
	} {
		if err := r.file(w, f[0], 0o644, []byte(f[1])); err != nil {
			return err
		}
	}
	return nil
}

func (r release) file(w *tar.Writer, name string, mode int64, text []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text)), ModTime: r.made, Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

func layer(write func(*tar.Writer) error) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// tarOf writes a folder as a tar, its files in the order of their names.
func tarOf(dir, out string, at time.Time) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	w := tar.NewWriter(file)
	var paths []string
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	}); err != nil {
		return err
	}
	slices.Sort(paths)
	r := release{made: at}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := r.file(w, filepath.ToSlash(name), 0o644, text); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return file.Close()
}
