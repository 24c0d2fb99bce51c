package driver

import (
	"context"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/my-org/postgres-operator/hack/csi-driver/internal/volume"
)

// Node mounts the volumes of one node.
type Node struct {
	csi.UnimplementedNodeServer
	Name    string
	Volumes volume.Store
	// mounting keeps two calls for one place from both finding it not mounted.
	mounting sync.Mutex
}

// find answers the file of a volume, which has to be on this node.
func (n *Node) find(id string) (string, error) {
	node, name, err := splitID(id)
	if err != nil {
		return "", err
	}
	if node != n.Name {
		return "", status.Errorf(codes.FailedPrecondition, "volume %s is on node %s, and this is node %s", id, node, n.Name)
	}
	if _, err := n.Volumes.Size(node, name); err != nil {
		return "", volumeError(err)
	}
	return n.Volumes.File(node, name), nil
}

// NodeStageVolume mounts a volume at the one place from which pods get it.
func (n *Node) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if request.GetStagingTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "no staging path is given")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	file, err := n.find(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	n.mounting.Lock()
	defer n.mounting.Unlock()
	options := request.GetVolumeCapability().GetMount().GetMountFlags()
	if err := volume.Mount(file, request.GetStagingTargetPath(), options); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume undoes NodeStageVolume.
func (n *Node) NodeUnstageVolume(
	_ context.Context, request *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	if err := n.unmount(request.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume shows a staged volume to a pod.
func (n *Node) NodePublishVolume(
	_ context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	if request.GetTargetPath() == "" || request.GetStagingTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "no target path or no staging path is given")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	if _, err := n.find(request.GetVolumeId()); err != nil {
		return nil, err
	}
	n.mounting.Lock()
	defer n.mounting.Unlock()
	staged, err := volume.IsMounted(request.GetStagingTargetPath())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !staged {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged", request.GetVolumeId())
	}
	if err := volume.Bind(request.GetStagingTargetPath(), request.GetTargetPath(), request.GetReadonly()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume undoes NodePublishVolume.
func (n *Node) NodeUnpublishVolume(
	_ context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := n.unmount(request.GetTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *Node) unmount(path string) error {
	if path == "" {
		return status.Error(codes.InvalidArgument, "no path is given")
	}
	n.mounting.Lock()
	defer n.mounting.Unlock()
	if err := volume.Unmount(path); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// NodeExpandVolume lets the file system fill the file that the controller has enlarged.
func (n *Node) NodeExpandVolume(
	_ context.Context, request *csi.NodeExpandVolumeRequest,
) (*csi.NodeExpandVolumeResponse, error) {
	file, err := n.find(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	mounted, err := volume.IsMounted(request.GetVolumePath())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %q", request.GetVolumeId(), request.GetVolumePath())
	}
	if err := volume.GrowMounted(file, request.GetVolumePath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	node, name, err := splitID(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	size, err := n.Volumes.Size(node, name)
	if err != nil {
		return nil, volumeError(err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

// NodeGetVolumeStats answers how full a volume is.
func (n *Node) NodeGetVolumeStats(
	_ context.Context, request *csi.NodeGetVolumeStatsRequest,
) (*csi.NodeGetVolumeStatsResponse, error) {
	if _, err := n.find(request.GetVolumeId()); err != nil {
		return nil, err
	}
	mounted, err := volume.IsMounted(request.GetVolumePath())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %q", request.GetVolumeId(), request.GetVolumePath())
	}
	usage, err := volume.Stat(request.GetVolumePath())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: usage.Total, Used: usage.Used, Available: usage.Available},
		{Unit: csi.VolumeUsage_INODES, Total: usage.Inodes, Used: usage.InodesUsed, Available: usage.InodesAvail},
	}}, nil
}

// NodeGetInfo answers the node's name and its place.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId:             n.Name,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{TopologyKey: n.Name}},
	}, nil
}

// NodeGetCapabilities answers what the node can do.
func (n *Node) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return response, nil
}
