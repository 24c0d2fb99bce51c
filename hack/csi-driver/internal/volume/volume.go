package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MinimumSize is what mkfs.xfs accepts at the least, in bytes.
const MinimumSize = 300 << 20

// ErrOtherSize says that a volume of the name is there and has another size than asked for.
var ErrOtherSize = errors.New("a volume of this name has another size")

// Store is the folder that holds the volumes of all nodes: ROOT/NODE/volumes/NAME.img.
type Store struct {
	Root string
}

// File is where a volume is kept.
func (s Store) File(node, name string) string {
	return filepath.Join(s.Root, node, "volumes", name+".img")
}

// Create makes a volume of at least a size and answers its true size. A volume that is there with that size is left.
func (s Store) Create(node, name string, size int64) (int64, error) {
	size = RoundUp(size)
	path := s.File(node, name)
	if _, err := os.Stat(filepath.Dir(filepath.Dir(path))); err != nil {
		return 0, fmt.Errorf("find the disk of node %q: %w", node, err)
	}
	if info, err := os.Stat(path); err == nil {
		if info.Size() != size {
			return 0, fmt.Errorf("volume %s has %d bytes, asked for %d: %w", path, info.Size(), size, ErrOtherSize)
		}
		return size, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, fmt.Errorf("make folder for volume: %w", err)
	}
	// Made aside and renamed: a file under its own name has its full size.
	temporary := path + ".new"
	if err := os.WriteFile(temporary, nil, 0o600); err != nil {
		return 0, fmt.Errorf("make volume: %w", err)
	}
	if err := os.Truncate(temporary, size); err != nil { // sparse: takes up what is written to it
		return 0, fmt.Errorf("give volume its size: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return 0, fmt.Errorf("make volume: %w", err)
	}
	return size, nil
}

// Delete removes a volume. One that is gone already is no error.
func (s Store) Delete(node, name string) error {
	if err := os.Remove(s.File(node, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume: %w", err)
	}
	return nil
}

// Size answers the size of a volume in bytes.
func (s Store) Size(node, name string) (int64, error) {
	info, err := os.Stat(s.File(node, name))
	if err != nil {
		return 0, fmt.Errorf("find volume: %w", err)
	}
	return info.Size(), nil
}

// Grow makes the volume's file larger and answers its size. It never makes one smaller. The file system follows with
// GrowMounted.
func (s Store) Grow(node, name string, size int64) (int64, error) {
	have, err := s.Size(node, name)
	if err != nil {
		return 0, err
	}
	if size = RoundUp(size); size <= have {
		return have, nil
	}
	if err := os.Truncate(s.File(node, name), size); err != nil {
		return 0, fmt.Errorf("grow volume: %w", err)
	}
	return size, nil
}

// RoundUp answers the size that a volume gets when size is asked for: whole MiB, and no less than MinimumSize.
func RoundUp(size int64) int64 {
	const unit = 1 << 20
	return max(MinimumSize, (size+unit-1)/unit*unit)
}

// Mount mounts a volume at a folder, which is made, and formats it first if nothing is on it.
func Mount(file, point string, options []string) error {
	if mounted, err := IsMounted(point); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(point, 0o750); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := format(file); err != nil {
		return err
	}
	// mount(8) has the kernel let go of the loop device when the last mount ends, however that comes about.
	return run("mount", "-t", "xfs", "-o", strings.Join(append([]string{"loop"}, options...), ","), file, point)
}

// format makes a file system on a volume that has none. mkfs.xfs sets a byte of the superblock while it is at work, so a
// formatting that was broken off is known by it.
func format(file string) error {
	const inProgress = 126 // offset of sb_inprogress in the superblock
	volume, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("open volume: %w", err)
	}
	defer volume.Close()
	superblock := make([]byte, inProgress+1)
	if _, err := volume.ReadAt(superblock, 0); err != nil {
		return fmt.Errorf("read volume: %w", err)
	}
	if string(superblock[:4]) == "XFSB" && superblock[inProgress] == 0 {
		return nil
	}
	return run("mkfs.xfs", "-q", "-f", "-K", file)
}

// Bind shows a mounted folder at another place.
func Bind(from, to string, readOnly bool) error {
	if mounted, err := IsMounted(to); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", from, to, err)
	}
	if readOnly {
		if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return errors.Join(fmt.Errorf("make %s read-only: %w", to, err), Unmount(to))
		}
	}
	return nil
}

// Unmount takes a mount away, and then its folder. What is not mounted, or not there, is no error.
func Unmount(point string) error {
	for {
		mounted, err := IsMounted(point)
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if err := unix.Unmount(point, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	if err := os.Remove(point); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove mount point: %w", err)
	}
	return nil
}

// GrowMounted lets the file system that is mounted at a folder fill its volume's file.
func GrowMounted(file, point string) error {
	out, err := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", file).Output()
	if err != nil {
		return fmt.Errorf("find loop device of %s: %w", file, err)
	}
	for _, device := range strings.Fields(string(out)) {
		if err := run("losetup", "--set-capacity", device); err != nil {
			return err
		}
	}
	return run("xfs_growfs", "-d", point)
}

// IsMounted tells whether something is mounted at just this folder.
func IsMounted(point string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("list mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == filepath.Clean(point) {
			return true, nil
		}
	}
	return false, nil
}

// Usage is how full a volume is, in bytes and in inodes.
type Usage struct {
	Total, Used, Available          int64
	Inodes, InodesUsed, InodesAvail int64
}

// Stat answers how full the file system at a folder is.
func Stat(point string) (Usage, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(point, &s); err != nil {
		return Usage{}, fmt.Errorf("ask how full %s is: %w", point, err)
	}
	block := s.Bsize
	return Usage{
		Total: int64(s.Blocks) * block, Used: int64(s.Blocks-s.Bfree) * block, Available: int64(s.Bavail) * block,
		Inodes: int64(s.Files), InodesUsed: int64(s.Files - s.Ffree), InodesAvail: int64(s.Ffree),
	}, nil
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
