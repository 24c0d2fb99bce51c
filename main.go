// The PostgresCluster operator and its instance manager: one program, two roles.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // maintenance windows have time zones, and the image has no files of them

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/my-org/postgres-operator/controllers"
	"github.com/my-org/postgres-operator/internal/instance"
)

// version is set by the linker.
var version = "dev"

func main() {
	root := &cobra.Command{
		Use:           "postgres-operator",
		Short:         "Runs PostgreSQL clusters on Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(operatorCommand(), instanceCommand())
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "postgres-operator:", err)
		os.Exit(1)
	}
}

// operatorCommand runs the controllers.
func operatorCommand() *cobra.Command {
	options := controllers.DefaultRunOptions()
	command := &cobra.Command{
		Use:   "operator",
		Short: "Reconcile PostgresCluster objects",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return controllers.Run(cmd.Context(), options)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.LeaderElect, "leader-elect", options.LeaderElect, "let only one of several operators act, through a Lease in the operator's namespace")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", options.MetricsAddress, "address of /metrics, over TLS with Kubernetes authentication; 0 switches it off")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", options.ProbeAddress, "address of /healthz and /readyz")
	flags.StringSliceVar(&options.Namespaces, "namespaces", options.Namespaces, "namespaces to watch; none means all (default: $WATCH_NAMESPACE)")
	flags.IntVar(&options.Workers, "workers", options.Workers, "clusters that are worked on at once")
	flags.Float32Var(&options.QPS, "kube-api-qps", options.QPS, "sustained requests a second to the API server")
	flags.IntVar(&options.Burst, "kube-api-burst", options.Burst, "requests to the API server in a burst")
	flags.StringVar(&options.PostgresRepository, "postgres-repository", options.PostgresRepository, "image repository whose tags are PostgreSQL versions")
	flags.StringVar(&options.ManagerImage, "operator-image", options.ManagerImage, "image of this program, for the init containers of PostgreSQL pods (default: $OPERATOR_IMAGE)")
	flags.StringVar(&options.LogLevel, "log-level", options.LogLevel, "debug, info or error")
	return command
}

// instanceCommand is process 1 of a PostgreSQL pod, and the init container that
// copies it there.
func instanceCommand() *cobra.Command {
	command := &cobra.Command{Use: "instance", Short: "Manage one PostgreSQL instance, as process 1 of its pod"}
	command.AddCommand(
		&cobra.Command{
			Use:   "install DIRECTORY",
			Short: "Copy this program and a passwd file into a directory",
			Args:  cobra.ExactArgs(1),
			RunE:  func(_ *cobra.Command, args []string) error { return instance.Install(args[0]) },
		},
		&cobra.Command{
			Use:   "run",
			Short: "Run PostgreSQL as the PostgresCluster object says",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				options, err := instance.OptionsFromEnvironment(version, os.LookupEnv)
				if err != nil {
					return err
				}
				return instance.Run(cmd.Context(), options)
			},
		},
	)
	return command
}
