package resources

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/pki"
)

var secretType = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}

// CASecret is the certificate authority of the cluster. No pod mounts it.
func CASecret(cluster *dbv1alpha1.PostgresCluster, existing *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	data, err := pki.EnsureCA(dataOf(existing), cluster.Namespace+"/"+cluster.Name, now)
	if err != nil {
		return nil, inSecret(naming.CASecret(cluster.Name), err)
	}
	return tlsSecret(cluster, naming.CASecret(cluster.Name), data), nil
}

// ServerSecret is what PostgreSQL and the instance managers present.
func ServerSecret(cluster *dbv1alpha1.PostgresCluster, ca, existing *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	data, err := pki.EnsureServer(ca.Data, dataOf(existing), naming.ServerDNSNames(cluster.Name, cluster.Namespace), now)
	if err != nil {
		return nil, inSecret(naming.ServerSecret(cluster.Name), err)
	}
	return tlsSecret(cluster, naming.ServerSecret(cluster.Name), data), nil
}

// ReplicationSecret is the client certificate of the instances.
func ReplicationSecret(cluster *dbv1alpha1.PostgresCluster, ca, existing *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	data, err := pki.EnsureClient(ca.Data, dataOf(existing), naming.UserReplication, now)
	if err != nil {
		return nil, inSecret(naming.ReplicationSecret(cluster.Name), err)
	}
	return tlsSecret(cluster, naming.ReplicationSecret(cluster.Name), data), nil
}

// AppSecret is how applications connect, in the layouts of basic-auth and of the
// Service Binding specification. An existing password stays. A missing or empty
// one is made anew; the instance manager sets it in the server.
//
// ca.crt is what a client has to trust; the URIs ask for verify-full, and the
// client adds where it has put that file.
func AppSecret(cluster *dbv1alpha1.PostgresCluster, ca, existing *corev1.Secret, newPassword func() (string, error)) (*corev1.Secret, error) {
	password := string(dataOf(existing)[naming.KeyPassword])
	if password == "" {
		var err error
		if password, err = newPassword(); err != nil {
			return nil, inSecret(naming.AppSecret(cluster.Name), err)
		}
	}
	database, user := cluster.Spec.Bootstrap.InitDB.Names()
	host := naming.ServiceHost(naming.PrimaryService(cluster.Name), cluster.Namespace)
	port := strconv.Itoa(naming.PortPostgres)
	uri := url.URL{Scheme: "postgresql", User: url.UserPassword(user, password), Host: host + ":" + port,
		Path: "/" + database, RawQuery: "sslmode=verify-full"}
	jdbc := url.Values{"user": {user}, "password": {password}, "sslmode": {"verify-full"}}
	return &corev1.Secret{
		TypeMeta:   secretType,
		ObjectMeta: owned(cluster, naming.AppSecret(cluster.Name)),
		Type:       corev1.SecretTypeBasicAuth,
		Data: toBytes(map[string]string{
			naming.KeyUsername: user,
			naming.KeyPassword: password,
			naming.KeyCACert:   string(ca.Data[naming.KeyCACert]),
			"type":             "postgresql",
			"provider":         naming.ManagedBy,
			"host":             host,
			"port":             port,
			"database":         database,
			"dbname":           database,
			"uri":              uri.String(),
			"jdbc-uri":         fmt.Sprintf("jdbc:postgresql://%s:%s/%s?%s", host, port, url.PathEscape(database), jdbc.Encode()),
			"pgpass":           fmt.Sprintf("%s:%s:%s:%s:%s\n", host, port, pgpass(database), pgpass(user), pgpass(password)),
		}),
	}, nil
}

func tlsSecret(cluster *dbv1alpha1.PostgresCluster, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{TypeMeta: secretType, ObjectMeta: owned(cluster, name), Type: corev1.SecretTypeTLS, Data: data}
}

func dataOf(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	return secret.Data
}

func toBytes(values map[string]string) map[string][]byte {
	data := make(map[string][]byte, len(values))
	for key, value := range values {
		data[key] = []byte(value)
	}
	return data
}

// pgpass escapes a field of a pgpass line.
func pgpass(field string) string {
	var escaped []rune
	for _, r := range field {
		if r == ':' || r == '\\' {
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, r)
	}
	return string(escaped)
}

func inSecret(name string, err error) error {
	return fmt.Errorf("Secret %s: %w", name, err)
}
