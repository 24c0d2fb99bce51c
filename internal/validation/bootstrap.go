package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

var (
	encodingPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,30}$`)
	localePattern   = regexp.MustCompile(`^[A-Za-z0-9_.@=-]{1,100}$`)

	// takenDatabases are made by initdb; takenRoles by initdb or the operator, or
	// are words that can be no role.
	takenDatabases = []string{"postgres", "template0", "template1"}
	takenRoles     = []string{naming.UserSuperuser, naming.UserReplication, "public", "none"}

	// providerSince are the majors that brought a locale provider.
	providerSince = []struct {
		provider dbv1alpha1.LocaleProvider
		major    int
	}{
		{dbv1alpha1.LocaleProviderLibc, postgres.OldestMajor},
		{dbv1alpha1.LocaleProviderICU, 15},
		{dbv1alpha1.LocaleProviderBuiltin, 17},
	}
)

func checkBootstrap(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	path := field.NewPath("spec", "bootstrap", "initdb")
	spec := cluster.Spec.Bootstrap.InitDB
	faults := checkDatabaseAndOwner(path, spec)
	if spec.Encoding != "" && !encodingPattern.MatchString(spec.Encoding) {
		faults = append(faults, field.Invalid(path.Child("encoding"), spec.Encoding, "must be the name of an encoding, such as UTF8"))
	}
	if spec.Locale != "" && !localePattern.MatchString(spec.Locale) {
		faults = append(faults, field.Invalid(path.Child("locale"), spec.Locale, "must be the name of a locale, such as en_US.UTF-8"))
	}
	faults = append(faults, checkLocaleProvider(path.Child("localeProvider"), cluster.Spec.PostgresVersion, spec.LocaleProvider)...)
	for i, source := range spec.PostInitSQL {
		if (source.SecretKeyRef == nil) == (source.ConfigMapKeyRef == nil) {
			faults = append(faults, field.Invalid(path.Child("postInitSQL").Index(i), "", "set exactly one of secretKeyRef and configMapKeyRef"))
		}
	}
	return faults
}

func checkDatabaseAndOwner(path *field.Path, spec dbv1alpha1.InitDBSpec) field.ErrorList {
	var faults field.ErrorList
	for _, name := range []struct{ field, value string }{{"database", spec.Database}, {"owner", spec.Owner}} {
		if name.value == "" {
			continue // has a default
		}
		if err := postgres.CheckIdentifier(name.value); err != nil {
			faults = append(faults, field.Invalid(path.Child(name.field), name.value, err.Error()))
		}
		if strings.ContainsFunc(name.value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			faults = append(faults, field.Invalid(path.Child(name.field), name.value, "must hold no control characters: remove them"))
		}
	}
	if slices.Contains(takenDatabases, spec.Database) {
		faults = append(faults, field.Invalid(path.Child("database"), spec.Database, "PostgreSQL has made this one for itself: choose another"))
	}
	owner := spec.Owner
	if owner == "" {
		owner = spec.Database
	}
	if slices.Contains(takenRoles, owner) || strings.HasPrefix(owner, "pg_") {
		faults = append(faults, field.Invalid(path.Child("owner"), owner, "PostgreSQL or the operator has taken this name: choose another"))
	}
	return faults
}

func checkLocaleProvider(path *field.Path, version string, provider dbv1alpha1.LocaleProvider) field.ErrorList {
	if provider == "" {
		return nil // has a default
	}
	for _, known := range providerSince {
		if known.provider != provider {
			continue
		}
		parsed, err := postgres.ParseVersion(version)
		if err == nil && parsed.Major < known.major { // a bad version is reported by its own check
			return field.ErrorList{field.Invalid(path, provider, fmt.Sprintf("needs PostgreSQL %d or later: choose libc, or a later postgresVersion", known.major))}
		}
		return nil
	}
	return field.ErrorList{field.Invalid(path, provider, "must be libc, icu or builtin")}
}
