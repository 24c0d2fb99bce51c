package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/my-org/postgres-operator/hack/csi-driver/internal/volume"
)

const mebibyte = 1 << 20

// world is a controller and a node, reached as Kubernetes reaches them.
type world struct {
	volumes    volume.Store
	controller csi.ControllerClient
	node       csi.NodeClient
	registrar  registration.RegistrationClient
	// staging and target are where a volume goes.
	staging, target string
}

func newWorld(t *testing.T) world {
	t.Helper()
	// Not t.TempDir: with the test's name in it, the path of a socket gets too long.
	dir, err := os.MkdirTemp("", "csi")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	kubelet := filepath.Join(dir, "kubelet")
	w := world{
		volumes: volume.Store{Root: filepath.Join(dir, "nodes")},
		staging: filepath.Join(kubelet, "staging"), target: filepath.Join(kubelet, "pod"),
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.volumes.Root, "node-1"), 0o755))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- ServeController(ctx, filepath.Join(dir, "c.sock"), w.volumes) }()
	go func() { ended <- ServeNode(ctx, kubelet, "node-1", w.volumes) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, errors.Join(<-ended, <-ended))
	})
	w.controller = csi.NewControllerClient(dial(t, filepath.Join(dir, "c.sock")))
	w.node = csi.NewNodeClient(dial(t, filepath.Join(kubelet, "plugins", Name, "csi.sock")))
	w.registrar = registration.NewRegistrationClient(dial(t, filepath.Join(kubelet, "plugins_registry", Name+"-reg.sock")))
	return w
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, c *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			return invoke(ctx, method, request, reply, c, options...)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func mountable(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

var once = mountable(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)

func order(name string, bytes int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapabilities: []*csi.VolumeCapability{once},
		AccessibilityRequirements: &csi.TopologyRequirement{
			Preferred: []*csi.Topology{{Segments: map[string]string{TopologyKey: "node-1"}}},
		},
	}
}

func TestTheKubeletLearnsWhereTheDriverIs(t *testing.T) {
	w := newWorld(t)
	info, err := w.registrar.GetInfo(t.Context(), &registration.InfoRequest{})
	require.NoError(t, err)
	assert.Equal(t, Name, info.GetName())
	assert.Equal(t, registration.CSIPlugin, info.GetType())
	assert.FileExists(t, filepath.Join(info.GetEndpoint()))
}

func TestOrdersThatCannotBeMet(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		code   codes.Code
	}{
		"no node":      {func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements = nil }, codes.InvalidArgument},
		"unknown node": {func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements.Preferred[0].Segments[TopologyKey] = "x" }, codes.ResourceExhausted},
		"path as name": {func(r *csi.CreateVolumeRequest) { r.Name = "../x" }, codes.InvalidArgument},
		"many writers": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = mountable(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
		}, codes.InvalidArgument},
		"limit too low": {func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{LimitBytes: mebibyte} }, codes.OutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			request := order("v", 400*mebibyte)
			test.change(request)
			_, err := w.controller.CreateVolume(t.Context(), request)
			assert.Equal(t, test.code, status.Code(err), "%v", err)
		})
	}
}

func TestCreateTwiceAndDeleteTwice(t *testing.T) {
	w := newWorld(t)
	first, err := w.controller.CreateVolume(t.Context(), order("v", 1))
	require.NoError(t, err)
	assert.EqualValues(t, volume.MinimumSize, first.GetVolume().GetCapacityBytes(), "a small volume gets what it says")
	again, err := w.controller.CreateVolume(t.Context(), order("v", 1))
	require.NoError(t, err)
	assert.Equal(t, first.GetVolume().GetVolumeId(), again.GetVolume().GetVolumeId())
	_, err = w.controller.CreateVolume(t.Context(), order("v", 500*mebibyte))
	assert.Equal(t, codes.AlreadyExists, status.Code(err))
	for range 2 {
		_, err = w.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: first.GetVolume().GetVolumeId()})
		require.NoError(t, err)
	}
	assert.NoFileExists(t, w.volumes.File("node-1", "v"))
}

// TestLifeOfAVolume goes the way of a claim: made, mounted, filled, enlarged while in use, unmounted, removed; each call
// is made twice, since Kubernetes repeats what it has no answer to.
func TestLifeOfAVolume(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	w := newWorld(t)
	created, err := w.controller.CreateVolume(t.Context(), order("life", 300*mebibyte))
	require.NoError(t, err)
	id := created.GetVolume().GetVolumeId()
	t.Cleanup(func() { _ = errors.Join(volume.Unmount(w.target), volume.Unmount(w.staging)) })
	w.mount(t, id)

	written := fill(t, filepath.Join(w.target, "a"), 400)
	assert.Less(t, written, 300, "the volume is as small as it says")
	w.enlarge(t, id, 600)
	assert.Greater(t, fill(t, filepath.Join(w.target, "b"), 400), 250, "the volume has grown while in use")

	stats, err := w.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: w.target})
	require.NoError(t, err)
	assert.InDelta(t, 600*mebibyte, stats.GetUsage()[0].GetTotal(), 100*mebibyte)

	for range 2 {
		_, err = w.node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: w.target})
		require.NoError(t, err)
	}
	for range 2 {
		_, err = w.node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: w.staging})
		require.NoError(t, err)
	}
	w.mount(t, id)
	assert.FileExists(t, filepath.Join(w.target, "a"), "what was written is there after another mount")
}

func (w world) mount(t *testing.T, id string) {
	t.Helper()
	_, err := w.node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: w.staging, TargetPath: w.target, VolumeCapability: once,
	})
	assert.Equal(t, codes.FailedPrecondition, status.Code(err), "not before it is staged")
	for range 2 {
		_, err := w.node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: id, StagingTargetPath: w.staging, VolumeCapability: once,
		})
		require.NoError(t, err)
	}
	for range 2 {
		_, err := w.node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: w.staging, TargetPath: w.target, VolumeCapability: once,
		})
		require.NoError(t, err)
	}
}

func (w world) enlarge(t *testing.T, id string, mebibytes int64) {
	t.Helper()
	for range 2 {
		answer, err := w.controller.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: mebibytes * mebibyte},
		})
		require.NoError(t, err)
		assert.True(t, answer.GetNodeExpansionRequired())
		_, err = w.node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: w.target})
		require.NoError(t, err)
	}
}

// fill writes until the disk is full, or limit MiB are written, and answers how many were.
func fill(t *testing.T, path string, limit int) int {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	block := make([]byte, mebibyte)
	for i := range limit {
		if _, err := file.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			return i
		}
	}
	return limit
}

func TestAVolumeOfAnotherNodeIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: "node-2_v", StagingTargetPath: w.staging, VolumeCapability: once,
	})
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
	_, err = w.node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: "node-1_absent", StagingTargetPath: w.staging, VolumeCapability: once,
	})
	assert.Equal(t, codes.NotFound, status.Code(err))
}
