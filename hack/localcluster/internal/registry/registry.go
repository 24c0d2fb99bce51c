package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	upstream "github.com/google/go-containerregistry/pkg/registry"
)

// Registry answers the registry protocol. The handler that it builds on keeps layers on disk but manifests in memory;
// this one keeps a copy of each manifest and hands them in again after a start.
type Registry struct {
	handler   http.Handler
	manifests string
}

// Open serves what is in a folder. The folder is made if it is not there.
func Open(dir string) (*Registry, error) {
	blobs := filepath.Join(dir, "blobs")
	r := &Registry{manifests: filepath.Join(dir, "manifests")}
	for _, folder := range []string{blobs, r.manifests} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("make the registry's folder: %w", err)
		}
	}
	r.handler = upstream.New(upstream.WithBlobHandler(upstream.NewDiskBlobHandler(blobs)),
		upstream.Logger(log.New(io.Discard, "", 0)))
	return r, r.restore()
}

// ServeHTTP answers one request.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	file, isManifest := r.manifestFile(request.URL.Path)
	if !isManifest || (request.Method != http.MethodPut && request.Method != http.MethodDelete) {
		r.handler.ServeHTTP(w, request)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, "read manifest: "+err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	r.handler.ServeHTTP(answer, request)
	if answer.Code < http.StatusMultipleChoices {
		if err := r.keep(request, file, body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// manifestFile is where the manifest of a path /v2/NAME/manifests/REFERENCE is kept.
func (r *Registry) manifestFile(path string) (string, bool) {
	name, found := strings.CutPrefix(path, "/v2/")
	if !found {
		return "", false
	}
	i := strings.LastIndex(name, "/manifests/")
	if i < 0 {
		return "", false
	}
	relative := filepath.Join(name[:i], name[i+len("/manifests/"):])
	return filepath.Join(r.manifests, relative), filepath.IsLocal(relative)
}

// keep notes a manifest, its type in the first line, or forgets it.
func (r *Registry) keep(request *http.Request, file string, body []byte) error {
	if request.Method == http.MethodDelete {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget manifest: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keep manifest: %w", err)
	}
	content := append([]byte(request.Header.Get("Content-Type")+"\n"), body...)
	// Renamed into place, so that a crash leaves the old manifest or the new one.
	temporary := file + ".new"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return fmt.Errorf("keep manifest: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("keep manifest: %w", err)
	}
	return nil
}

// restore hands in every manifest that was kept. An index is refused before the images that it lists are there, so what
// was refused is tried again as long as that gets something in; what is left then is out of date and stays out.
func (r *Registry) restore() error {
	var files []string
	err := filepath.WalkDir(r.manifests, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasSuffix(path, ".new") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}
	for len(files) > 0 {
		var refused []string
		for _, file := range files {
			accepted, err := r.handIn(file)
			if err != nil {
				return err
			}
			if !accepted {
				refused = append(refused, file)
			}
		}
		if len(refused) == len(files) {
			return nil
		}
		files = refused
	}
	return nil
}

func (r *Registry) handIn(file string) (bool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("read manifest: %w", err)
	}
	relative, err := filepath.Rel(r.manifests, file)
	if err != nil {
		return false, fmt.Errorf("name manifest %s: %w", file, err)
	}
	contentType, body, _ := strings.Cut(string(content), "\n")
	url := fmt.Sprintf("/v2/%s/manifests/%s", filepath.Dir(relative), filepath.Base(relative))
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPut, url, strings.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	r.handler.ServeHTTP(answer, request)
	return answer.Code < http.StatusMultipleChoices, nil
}

// Serve answers requests at HOST:PORT until the context ends.
func (r *Registry) Serve(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: r, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve images at %s: %w", address, err)
	}
	return nil
}
