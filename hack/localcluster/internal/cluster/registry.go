package cluster

import (
	"archive/tar"
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

// pauseSource is the program of pod sandboxes.
//
//go:embed pause/pause.c
var pauseSource []byte

func reachable(socket string) error {
	connection, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", socket, err)
	}
	return connection.Close()
}

// StartRegistry makes the registry run, with or without a cluster around it.
func (c *Cluster) StartRegistry(ctx context.Context) error {
	if err := c.ensureMachine(); err != nil {
		return err
	}
	running, err := c.running()
	if err != nil {
		return err
	}
	process := c.plan.RegistryProcess()
	if _, found := running[process.Name]; !found {
		if err := c.start(process); err != nil {
			return err
		}
		c.say("the registry is started")
	}
	client := &http.Client{Timeout: time.Second}
	return waitFor(ctx, "the registry (see "+c.plan.LogFile(process.Name)+")", 20*time.Second, func(ctx context.Context) error {
		_, err := get(ctx, client, "http://"+c.plan.Registry()+"/v2/")
		return err
	})
}

// ensurePauseImage starts the registry and makes sure that it has the image of pod sandboxes.
func (c *Cluster) ensurePauseImage(ctx context.Context) error {
	if err := c.StartRegistry(ctx); err != nil {
		return err
	}
	name := c.plan.Registry() + "/local/pause:1"
	if exec.CommandContext(ctx, c.plan.Program("crane"), "digest", "--insecure", name).Run() == nil {
		return nil
	}
	work, err := os.MkdirTemp("", "pause")
	if err != nil {
		return fmt.Errorf("build pause image: %w", err)
	}
	defer os.RemoveAll(work)
	source, program, layer := filepath.Join(work, "pause.c"), filepath.Join(work, "pause"), filepath.Join(work, "layer.tar")
	if err := os.WriteFile(source, pauseSource, 0o600); err != nil {
		return fmt.Errorf("build pause image: %w", err)
	}
	if err := command(ctx, "gcc", "-O2", "-static", "-s", "-o", program, source); err != nil {
		return err
	}
	if err := writeLayer(layer, program); err != nil {
		return err
	}
	if err := command(ctx, c.plan.Program("crane"), "append", "--insecure", "--new_layer", layer, "--new_tag", name); err != nil {
		return err
	}
	if err := command(ctx, c.plan.Program("crane"), "mutate", "--insecure", "--entrypoint=/pause", "--user=65535:65535",
		"--set-platform=linux/"+runtime.GOARCH, "--tag", name, name); err != nil {
		return err
	}
	c.say("built %s", plan.PauseImage)
	return nil
}

func command(ctx context.Context, program string, args ...string) error {
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", program, args, err, out)
	}
	return nil
}

// writeLayer packs one program as /pause.
func writeLayer(path, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	header := &tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("pack pause image: %w", err)
	}
	return file.Close()
}
