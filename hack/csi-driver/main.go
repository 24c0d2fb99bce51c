package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/my-org/postgres-operator/hack/csi-driver/internal/driver"
	"github.com/my-org/postgres-operator/hack/csi-driver/internal/volume"
)

// manifests are the driver's object and its storage classes.
//
//go:embed storageclass.yaml
var manifests string

func main() {
	node := flag.String("node", "", "serve the kubelet of this node")
	kubeletDir := flag.String("kubelet-dir", "", "root directory of that kubelet")
	controller := flag.Bool("controller", false, "serve the side-cars that make and resize volumes")
	socket := flag.String("socket", "", "where to serve them")
	data := flag.String("data", "", "folder of the nodes' disks: volumes are DATA/NODE/volumes/NAME.img")
	printManifests := flag.Bool("manifests", false, "print the driver's object and its storage classes, and end")
	flag.Parse()
	if *printManifests {
		fmt.Print(manifests)
		return
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *node, *kubeletDir, *controller, *socket, *data); err != nil {
		slog.Error("the driver ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, node, kubeletDir string, controller bool, socket, data string) error {
	volumes := volume.Store{Root: data}
	switch {
	case data == "":
		return errors.New("--data is missing")
	case controller && socket != "" && node == "":
		return driver.ServeController(ctx, socket, volumes)
	case !controller && node != "" && kubeletDir != "":
		return driver.ServeNode(ctx, kubeletDir, node, volumes)
	default:
		return errors.New("want either --controller and --socket, or --node and --kubelet-dir")
	}
}
