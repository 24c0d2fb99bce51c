package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnmountBelow takes away every mount below a folder, the last one first.
func UnmountBelow(dir string) error {
	mounts, err := Mounts()
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		point := strings.TrimSuffix(mount.Point, "//deleted")
		if !strings.HasPrefix(point, dir+"/") {
			continue
		}
		// Lazily: a mount that somebody still looks at goes when he stops looking.
		err := unix.Unmount(point, unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// DetachLoopsBelow lets go of every loop device whose file is below a folder, whether or not the file is still there.
func DetachLoopsBelow(dir string) error {
	out, err := exec.Command("losetup", "--json", "--list", "--output", "NAME,BACK-FILE").Output()
	if err != nil {
		return fmt.Errorf("list loop devices: %w", err)
	}
	devices, err := loopsBelow(out, dir)
	if err != nil {
		return err
	}
	for _, device := range devices {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			return fmt.Errorf("detach loop device %s: %w: %s", device, err, out)
		}
	}
	return nil
}

func loopsBelow(listing []byte, dir string) ([]string, error) {
	if len(strings.TrimSpace(string(listing))) == 0 { // no device at all
		return nil, nil
	}
	var list struct {
		Loopdevices []struct {
			Name string `json:"name"`
			File string `json:"back-file"`
		} `json:"loopdevices"`
	}
	if err := json.Unmarshal(listing, &list); err != nil {
		return nil, fmt.Errorf("read list of loop devices: %w", err)
	}
	var out []string
	for _, device := range list.Loopdevices {
		if strings.HasPrefix(device.File, dir+"/") {
			out = append(out, device.Name)
		}
	}
	return out, nil
}

// RemoveShimSockets removes the sockets of containerd's shims that were running below a state folder. containerd keeps
// them in a folder of the whole machine and a killed shim leaves its own there.
func RemoveShimSockets(state string) {
	for _, pattern := range []string{"bootstrap.json", "address"} {
		files, _ := filepath.Glob(filepath.Join(state, "io.containerd.runtime.v2.task", "*", "*", pattern))
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			if _, rest, found := strings.Cut(string(content), "unix://"); found {
				socket, _, _ := strings.Cut(strings.TrimSpace(rest), `"`)
				_ = os.Remove(socket)
			}
		}
	}
}

// RemoveFilesNaming removes the files of a folder that contain a text. CNI's library keeps a note of each pod in a folder
// of the whole machine, and pods that are killed leave theirs there.
func RemoveFilesNaming(folder, text string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
			_ = os.Remove(path)
		}
	}
}

// RemoveLinksInto removes the symbolic links of a folder that point below another folder. Kubelets leave such links in
// /var/log/containers.
func RemoveLinksInto(folder, target string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, target+"/") {
			_ = os.Remove(path)
		}
	}
}
