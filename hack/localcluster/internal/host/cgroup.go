package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroups is the machine's control groups: either one tree (version 2), or one tree a controller (version 1).
type Cgroups struct {
	// unified is the root of the version 2 tree if that has the controllers.
	unified string
	// trees are the mounted version 1 trees by controller.
	trees map[string]string
}

// Mount is one line of /proc/self/mountinfo.
type Mount struct {
	Point   string
	Type    string
	Options string
	Source  string
}

// Mounts lists what is mounted, in the order of mounting.
func Mounts() ([]Mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMounts(string(data)), nil
}

func parseMounts(mountinfo string) []Mount {
	var out []Mount
	for line := range strings.Lines(mountinfo) {
		left, right, found := strings.Cut(line, " - ")
		before, after := strings.Fields(left), strings.Fields(right)
		if !found || len(before) < 5 || len(after) < 3 {
			continue
		}
		out = append(out, Mount{Point: unescape(before[4]), Type: after[0], Source: unescape(after[1]), Options: after[2]})
	}
	return out
}

// unescape undoes the octal escapes of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// FindCgroups looks at what is mounted.
func FindCgroups() (*Cgroups, error) {
	mounts, err := Mounts()
	if err != nil {
		return nil, err
	}
	return cgroupsOf(mounts)
}

func cgroupsOf(mounts []Mount) (*Cgroups, error) {
	c := &Cgroups{trees: map[string]string{}}
	for _, mount := range mounts {
		switch {
		case mount.Type == "cgroup2" && mount.Point == "/sys/fs/cgroup":
			c.unified = mount.Point
		case mount.Type == "cgroup2":
			c.trees["unified"] = mount.Point // beside version 1, without controllers
		case mount.Type == "cgroup":
			c.trees[filepath.Base(mount.Point)] = mount.Point
		}
	}
	if c.unified == "" && c.trees["freezer"] == "" {
		return nil, errors.New("no control groups are mounted: neither version 2 on /sys/fs/cgroup nor a version 1 freezer")
	}
	return c, nil
}

func (c *Cgroups) roots() []string {
	if c.unified != "" {
		return []string{c.unified}
	}
	var roots []string
	for _, root := range c.trees {
		roots = append(roots, root)
	}
	slices.Sort(roots)
	return roots
}

// freezer is the tree that knows every process of a group and can stop them.
func (c *Cgroups) freezer() string {
	if c.unified != "" {
		return c.unified
	}
	return c.trees["freezer"]
}

// Create makes a group in every tree, with all controllers and with the CPUs and memory nodes of its parent.
func (c *Cgroups) Create(group string) error {
	for _, root := range c.roots() {
		path := root
		for _, part := range strings.Split(group, "/") {
			parent := path
			path = filepath.Join(path, part)
			if c.unified != "" {
				if err := enableControllers(parent); err != nil {
					return err
				}
			}
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make control group %s: %w", path, err)
			}
			// A new version 1 cpuset is empty, and a process may not enter it before it has CPUs and memory.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				if err := copyIfEmpty(filepath.Join(parent, file), filepath.Join(path, file)); err != nil && c.unified == "" {
					return err
				}
			}
		}
	}
	return nil
}

func enableControllers(path string) error {
	available, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers of %s: %w", path, err)
	}
	for _, controller := range strings.Fields(string(available)) {
		// One by one: a controller that cannot be passed on (a real-time CPU group) must not keep back the others.
		_ = os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}

func copyIfEmpty(from, to string) error {
	value, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	if have, err := os.ReadFile(to); err == nil && strings.TrimSpace(string(have)) != "" {
		return nil
	}
	if err := os.WriteFile(to, value, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return nil
}

// Enter moves the calling process into a group of every tree.
func (c *Cgroups) Enter(group string) error {
	for _, root := range c.roots() {
		file := filepath.Join(root, group, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return fmt.Errorf("enter control group %s: %w", file, err)
		}
	}
	return nil
}

// Groups lists the groups at the top whose names begin with a prefix.
func (c *Cgroups) Groups(prefix string) ([]string, error) {
	var groups []string
	for _, root := range c.roots() {
		entries, err := os.ReadDir(root)
		if err != nil {
			return nil, fmt.Errorf("list control groups: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) && !slices.Contains(groups, entry.Name()) {
				groups = append(groups, entry.Name())
			}
		}
	}
	return groups, nil
}

// Processes lists the processes of a group and of all groups below it.
func (c *Cgroups) Processes(group string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(filepath.Join(c.freezer(), group), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		file, err := os.Open(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil //nolint:nilerr // the group went away while we looked
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list processes of control group %s: %w", group, err)
	}
	return pids, nil
}

// Freeze stops every process of a group between two instructions, and returns when all have stopped.
func (c *Cgroups) Freeze(group string) error {
	if c.unified != "" {
		return c.setFreezer(group, "cgroup.freeze", "1", "cgroup.events", "frozen 1")
	}
	return c.setFreezer(group, "freezer.state", "FROZEN", "freezer.state", "FROZEN")
}

// Thaw lets the processes of a group go on.
func (c *Cgroups) Thaw(group string) error {
	if c.unified != "" {
		return c.setFreezer(group, "cgroup.freeze", "0", "cgroup.events", "frozen 0")
	}
	return c.setFreezer(group, "freezer.state", "THAWED", "freezer.state", "THAWED")
}

func (c *Cgroups) setFreezer(group, file, value, resultFile, result string) error {
	dir := filepath.Join(c.freezer(), group)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		// Written again in each turn: a version 1 freezer that met a busy process goes on only when asked again.
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s of control group %s to %s: %w", file, group, value, err)
		}
		state, err := os.ReadFile(filepath.Join(dir, resultFile))
		if err != nil {
			return fmt.Errorf("read %s of control group %s: %w", resultFile, group, err)
		}
		if strings.Contains(string(state), result) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("control group %s did not reach %q within 20 s: %s", group, result, state)
		}
	}
}

// Kill ends every process of a group at one moment: they are stopped first, so that none sees another one die. It
// returns when all are gone.
func (c *Cgroups) Kill(group string) error {
	if _, err := os.Stat(filepath.Join(c.freezer(), group)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A frozen descendant (a paused container) would outlive the kill, and the freeze may fail where processes are stuck
	// in the kernel: neither is a reason not to kill the rest.
	_ = c.Freeze(group)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		pids, err := c.Processes(group)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if err := c.thawAll(group); err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("control group %s: processes %v are still there 20 s after SIGKILL", group, pids)
		}
	}
}

func (c *Cgroups) thawAll(group string) error {
	file, value := "freezer.state", "THAWED"
	if c.unified != "" {
		file, value = "cgroup.freeze", "0"
	}
	return filepath.WalkDir(filepath.Join(c.freezer(), group), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.WriteFile(filepath.Join(path, file), []byte(value), 0o644)
		}
		return nil
	})
}

// Remove deletes a group, with all groups below it, from every tree. Its processes must be gone.
func (c *Cgroups) Remove(group string) error {
	for _, root := range c.roots() {
		var paths []string
		_ = filepath.WalkDir(filepath.Join(root, group), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				paths = append(paths, path)
			}
			return nil
		})
		for _, path := range slices.Backward(paths) {
			if err := removeGroup(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeGroup waits a little: the kernel lets go of a group shortly after its last process has been reaped.
func removeGroup(path string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Rmdir(path)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", path, err)
		}
	}
}
