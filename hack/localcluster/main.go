package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/cluster"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/host"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/registry"
)

func main() {
	// Started by itself: see host.Start. Before anything else, since flags here are another program's.
	if len(os.Args) > 4 && os.Args[1] == "enter-and-exec" {
		fail(host.EnterAndExec(os.Args[2], os.Args[3], os.Args[4], os.Args[5:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "hack/cluster:", err)
	os.Exit(1)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A local Kubernetes cluster of several nodes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(upCommand(), downCommand(), statusCommand(), nodeCommand(), apiServerCommand(), logsCommand(),
		registryCommand(), kubeconfigCommand())
	return root
}

// open finds the cluster by the environment.
func open(nodes int) (*cluster.Cluster, error) {
	dir := os.Getenv("POSTGRES_OPERATOR_CLUSTER_DIR")
	if dir == "" {
		dir = "/var/lib/postgres-operator-cluster"
	}
	cache := os.Getenv("POSTGRES_OPERATOR_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find the cache folder: %w; set POSTGRES_OPERATOR_CACHE", err)
		}
		cache = filepath.Join(home, ".cache", "postgres-operator")
	}
	return cluster.Open(dir, cache, nodes, os.Stderr)
}

// change opens the cluster for a command that changes it: as root, and alone.
func change(nodes int) (*cluster.Cluster, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make networks, control groups and mounts; run this command as root")
	}
	c, err := open(nodes)
	if err != nil {
		return nil, err
	}
	return c, c.Lock()
}

func upCommand() *cobra.Command {
	var nodes int
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or see that it runs well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("nodes") && nodes == 0 {
				return errors.New("--nodes 0: a cluster has at least one node")
			}
			c, err := change(nodes)
			if err != nil {
				return err
			}
			return c.Up(cmd.Context())
		},
	}
	command.Flags().IntVar(&nodes, "nodes", 0,
		fmt.Sprintf("number of nodes (default: as many as it has, or %d; another number makes a new cluster)", cluster.DefaultNodes))
	return command
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and leave nothing of it but logs and pushed images",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := change(0)
			if err != nil {
				return err
			}
			return c.Down()
		},
	}
}

func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show processes, nodes and faults; fails if something is amiss",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(0)
			if err != nil {
				return err
			}
			return c.Status(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func nodeCommand() *cobra.Command {
	node := &cobra.Command{Use: "node", Short: "Do to a node what fate does to real ones, and undo it"}
	add := func(verb, short string, do func(context.Context, *cluster.Cluster, string) error) {
		node.AddCommand(&cobra.Command{
			Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := change(0)
				if err != nil {
					return err
				}
				return do(cmd.Context(), c, args[0])
			},
		})
	}
	add("freeze", "Stop everything of the node where it stands, and silence its network",
		func(_ context.Context, c *cluster.Cluster, name string) error { return c.Freeze(name) })
	add("kill", "Cut the node's power: all its processes end at one moment; its disk stays",
		func(_ context.Context, c *cluster.Cluster, name string) error { return c.Kill(name) })
	add("cut", "Take the node off the network; its pods go on running",
		func(_ context.Context, c *cluster.Cluster, name string) error { return c.CutOff(name) })
	heal := func(ctx context.Context, c *cluster.Cluster, name string) error { return c.Heal(ctx, name) }
	add("thaw", "Undo freeze (the same as heal)", heal)
	add("heal", "Undo whatever was done to the node; a killed node boots", heal)
	return node
}

func apiServerCommand() *cobra.Command {
	command := &cobra.Command{Use: "apiserver", Short: "Stop the API server, or start it again"}
	command.AddCommand(&cobra.Command{
		Use: "stop", Short: "Kill the API server", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := change(0)
			if err != nil {
				return err
			}
			return c.StopAPIServer()
		},
	}, &cobra.Command{
		Use: "start", Short: "Start the API server and wait until it is ready", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := change(0)
			if err != nil {
				return err
			}
			return c.StartAPIServer(cmd.Context())
		},
	})
	return command
}

func logsCommand() *cobra.Command {
	var follow bool
	command := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of a process, by its name in status: kube-apiserver, node-1/kubelet",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(0)
			if err != nil {
				return err
			}
			tail := exec.CommandContext(cmd.Context(), "tail", "-n", "+1", c.Plan().LogFile(args[0]))
			if follow {
				tail.Args = append(tail.Args, "--follow=name")
			}
			tail.Stdout, tail.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := tail.Run(); err != nil {
				return fmt.Errorf("print log of %s: %w", args[0], err)
			}
			return nil
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is written")
	return command
}

func registryCommand() *cobra.Command {
	printAddress := func(cmd *cobra.Command, c *cluster.Cluster) { fmt.Fprintln(cmd.OutOrStdout(), c.Plan().Registry()) }
	command := &cobra.Command{
		Use: "registry", Short: "Print the registry's HOST:PORT", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(0)
			if err != nil {
				return err
			}
			printAddress(cmd, c)
			return nil
		},
	}
	command.AddCommand(&cobra.Command{
		Use: "start", Short: "Start the registry, even without a cluster, and print its HOST:PORT", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := change(0)
			if err != nil {
				return err
			}
			if err := c.StartRegistry(cmd.Context()); err != nil {
				return err
			}
			printAddress(cmd, c)
			return nil
		},
	}, &cobra.Command{
		Use: "serve HOST:PORT FOLDER", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			images, err := registry.Open(args[1])
			if err != nil {
				return err
			}
			return images.Serve(cmd.Context(), args[0])
		},
	})
	return command
}

func kubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(0)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.Plan().Kubeconfig())
			return nil
		},
	}
}
