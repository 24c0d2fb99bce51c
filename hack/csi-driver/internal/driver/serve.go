package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/my-org/postgres-operator/hack/csi-driver/internal/volume"
)

// ServeController serves the side-cars at a socket until the context ends.
func ServeController(ctx context.Context, socket string, volumes volume.Store) error {
	server := newServer()
	csi.RegisterIdentityServer(server, Identity{})
	csi.RegisterControllerServer(server, Controller{Volumes: volumes})
	return serve(ctx, server, socket)
}

// ServeNode serves the kubelet whose root directory is given, and tells it of the driver, until the context ends.
func ServeNode(ctx context.Context, kubeletDir, name string, volumes volume.Store) error {
	socket := filepath.Join(kubeletDir, "plugins", Name, "csi.sock")
	server := newServer()
	csi.RegisterIdentityServer(server, Identity{})
	csi.RegisterNodeServer(server, &Node{Name: name, Volumes: volumes})

	registrar := newServer()
	registration.RegisterRegistrationServer(registrar, registrationServer{socket: socket})

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- serve(ctx, server, socket) }()
	go func() {
		ended <- serve(ctx, registrar, filepath.Join(kubeletDir, "plugins_registry", Name+"-reg.sock"))
	}()
	first := <-ended
	cancel() // one without the other is of no use
	return errors.Join(first, <-ended)
}

// registrationServer answers the kubelet, which finds its socket in the folder of plug-ins.
type registrationServer struct {
	registration.UnimplementedRegistrationServer
	socket string
}

func (r registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: Name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registrationServer) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if status.GetPluginRegistered() {
		slog.Info("the kubelet has registered the driver")
	} else {
		// The kubelet tries again by itself.
		slog.Error("the kubelet has not registered the driver", "reason", status.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func newServer() *grpc.Server {
	return grpc.NewServer(grpc.UnaryInterceptor(func(
		ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		response, err := handler(ctx, request)
		if err != nil {
			slog.Error("call failed", "method", info.FullMethod, "request", request, "error", err)
		}
		return response, err
	}))
}

func serve(ctx context.Context, server *grpc.Server, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return fmt.Errorf("make folder for socket: %w", err)
	}
	// One that a killed driver has left.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	slog.Info("listening", "socket", socket)
	// Ended before it began to serve, it says that it has been stopped: so it has.
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve at %s: %w", socket, err)
	}
	return nil
}
