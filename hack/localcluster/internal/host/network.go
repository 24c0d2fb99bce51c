package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// NetnsPath is the file by which a network namespace is entered.
func NetnsPath(name string) string { return filepath.Join("/run/netns", name) }

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func linkExists(name string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", name))
	return err == nil
}

// EnsureBridge makes a bridge that has an address of the machine on it, or leaves it as it is.
func EnsureBridge(name, address string) error {
	if !linkExists(name) {
		if err := ip("link", "add", name, "type", "bridge"); err != nil {
			return err
		}
	}
	if err := ip("address", "replace", address, "dev", name); err != nil {
		return err
	}
	return ip("link", "set", name, "up")
}

// Cable is the network of a node: a network namespace, joined to a bridge by a pair of virtual interfaces. Inside the
// namespace the interface is called eth0.
type Cable struct {
	Netns  string
	Link   string
	Bridge string
	// Address has the length of its prefix: 172.30.0.11/24.
	Address string
	Gateway string
	// Routes are networks and the neighbours that lead to them.
	Routes map[string]string
}

// Connect makes the namespace and its cable anew.
func Connect(c Cable) error {
	if err := Disconnect(c.Netns, c.Link); err != nil {
		return err
	}
	inside := func(args ...string) []string { return append([]string{"-n", c.Netns}, args...) }
	steps := [][]string{
		{"netns", "add", c.Netns},
		{"link", "add", c.Link, "type", "veth", "peer", "name", "eth0", "netns", c.Netns},
		{"link", "set", c.Link, "master", c.Bridge},
		{"link", "set", c.Link, "up"},
		inside("link", "set", "lo", "up"),
		inside("address", "add", c.Address, "dev", "eth0"),
		inside("link", "set", "eth0", "up"),
		inside("route", "add", "default", "via", c.Gateway),
	}
	for network, via := range c.Routes {
		steps = append(steps, inside("route", "add", network, "via", via))
	}
	for _, step := range steps {
		if err := ip(step...); err != nil {
			return err
		}
	}
	// The node passes on what its pods send and receive.
	out, err := exec.Command("ip", "netns", "exec", c.Netns, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward").CombinedOutput()
	if err != nil {
		return fmt.Errorf("turn on forwarding in network namespace %s: %w: %s", c.Netns, err, out)
	}
	return nil
}

// Disconnect removes a namespace and its cable, if they are there.
func Disconnect(netns, link string) error {
	if linkExists(link) {
		if err := ip("link", "delete", link); err != nil {
			return err
		}
	}
	if _, err := os.Stat(NetnsPath(netns)); err == nil {
		return ip("netns", "delete", netns)
	}
	return nil
}

// SetLink brings an interface of the machine up or down.
func SetLink(name string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return ip("link", "set", name, state)
}

// AddRoute makes the machine reach a network through a neighbour.
func AddRoute(network, via string) error { return ip("route", "replace", network, "via", via) }

// RemoveNetwork removes every namespace and interface whose name begins with a prefix.
func RemoveNetwork(prefix string) error {
	namespaces, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list network namespaces: %w", err)
	}
	for _, namespace := range namespaces {
		if strings.HasPrefix(namespace.Name(), prefix) {
			if err := ip("netns", "delete", namespace.Name()); err != nil {
				return err
			}
		}
	}
	links, err := filepath.Glob("/sys/class/net/" + prefix + "*")
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	for _, link := range links {
		// The other end of a pair may have taken it along.
		if name := filepath.Base(link); linkExists(name) {
			if err := ip("link", "delete", name); err != nil && linkExists(name) {
				return err
			}
		}
	}
	return nil
}
