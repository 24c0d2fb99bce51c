package driver

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/my-org/postgres-operator/hack/csi-driver/internal/volume"
)

// Controller makes, removes and enlarges volumes. It runs once, beside the nodes, and reaches their disks as files.
type Controller struct {
	csi.UnimplementedControllerServer
	Volumes volume.Store
}

// A volume's id is NODE_NAME: no name of a node has an underscore in it.
const idSeparator = "_"

var plainName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*$`)

func splitID(id string) (node, name string, err error) {
	node, name, found := strings.Cut(id, idSeparator)
	if !found || !plainName.MatchString(node) || !plainName.MatchString(name) {
		return "", "", status.Errorf(codes.NotFound, "volume id %q: want NODE_NAME, as this driver makes them", id)
	}
	return node, name, nil
}

// CreateVolume makes a volume on the node that the scheduler has chosen.
func (c Controller) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if !plainName.MatchString(request.GetName()) {
		return nil, status.Errorf(codes.InvalidArgument, "volume name %q: want letters, digits, points and hyphens", request.GetName())
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	if request.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "this driver makes no volumes from snapshots or other volumes")
	}
	node, err := chosenNode(request.GetAccessibilityRequirements())
	if err != nil {
		return nil, err
	}
	size := volume.RoundUp(request.GetCapacityRange().GetRequiredBytes())
	if limit := request.GetCapacityRange().GetLimitBytes(); limit > 0 && size > limit {
		return nil, status.Errorf(codes.OutOfRange, "the limit of %d bytes is below the smallest volume that holds %d", limit, size)
	}
	size, err = c.Volumes.Create(node, request.GetName(), size)
	switch {
	case errors.Is(err, volume.ErrOtherSize):
		return nil, status.Error(codes.AlreadyExists, err.Error())
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Errorf(codes.ResourceExhausted, "node %q has no place for volumes: %v", node, err)
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           node + idSeparator + request.GetName(),
		CapacityBytes:      size,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{TopologyKey: node}}},
	}}, nil
}

func chosenNode(requirements *csi.TopologyRequirement) (string, error) {
	for _, topology := range append(requirements.GetPreferred(), requirements.GetRequisite()...) {
		if node := topology.GetSegments()[TopologyKey]; plainName.MatchString(node) {
			return node, nil
		}
	}
	return "", status.Errorf(codes.InvalidArgument,
		"no node is asked for by %s; a storage class of this driver needs volumeBindingMode: WaitForFirstConsumer", TopologyKey)
}

// DeleteVolume removes a volume.
func (c Controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume id is given")
	}
	node, name, err := splitID(request.GetVolumeId())
	if err != nil {
		return &csi.DeleteVolumeResponse{}, nil //nolint:nilerr // never made here, so it is gone
	}
	if err := c.Volumes.Delete(node, name); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerExpandVolume enlarges a volume's file; the node then enlarges the file system.
func (c Controller) ControllerExpandVolume(
	_ context.Context, request *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	node, name, err := splitID(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	required, limit := request.GetCapacityRange().GetRequiredBytes(), request.GetCapacityRange().GetLimitBytes()
	if limit > 0 && volume.RoundUp(required) > limit {
		return nil, status.Errorf(codes.OutOfRange, "the limit of %d bytes is below %d", limit, volume.RoundUp(required))
	}
	size, err := c.Volumes.Grow(node, name, required)
	if err != nil {
		return nil, volumeError(err)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

// ValidateVolumeCapabilities tells whether a volume can be used in the ways that are asked about.
func (c Controller) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	node, name, err := splitID(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if _, err := c.Volumes.Size(node, name); err != nil {
		return nil, volumeError(err)
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: request.GetVolumeCapabilities(),
	}}, nil
}

// ControllerGetCapabilities answers what the controller can do.
func (Controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return response, nil
}

// checkCapabilities refuses what a file on one node cannot be.
func checkCapabilities(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "no volume capability is given")
	}
	for _, capability := range capabilities {
		if capability.GetBlock() != nil {
			return status.Error(codes.InvalidArgument, "volumeMode Block: this driver makes file systems only")
		}
		if kind := capability.GetMount().GetFsType(); kind != "" && kind != "xfs" {
			return status.Errorf(codes.InvalidArgument, "file system %q: this driver makes xfs only", kind)
		}
		switch mode := capability.GetAccessMode().GetMode(); mode {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s: a volume of this driver is on one node", mode)
		}
	}
	return nil
}

func volumeError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return status.Error(codes.NotFound, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
