package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The majors that the operator runs.
const (
	OldestMajor = 13
	NewestMajor = 18
)

// Version is a PostgreSQL version, such as 15.20.
type Version struct {
	Major, Minor int
}

var versionPattern = regexp.MustCompile(`^([0-9]{1,4})\.([0-9]{1,4})$`)

// ParseVersion reads a version as spec.postgresVersion has it: "15.20".
func ParseVersion(text string) (Version, error) {
	parts := versionPattern.FindStringSubmatch(text)
	if parts == nil {
		return Version{}, fmt.Errorf("%q is no PostgreSQL version: write major and minor, as in \"17.2\"", text)
	}
	major, _ := strconv.Atoi(parts[1])
	minor, _ := strconv.Atoi(parts[2])
	return Version{Major: major, Minor: minor}, nil
}

// String is the version as it is written in spec.postgresVersion.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Compare is negative, zero or positive as v is older than, equal to or newer
// than other: 15.9 is older than 15.20.
func (v Version) Compare(other Version) int {
	if v.Major != other.Major {
		return v.Major - other.Major
	}
	return v.Minor - other.Minor
}

var serverVersion = regexp.MustCompile(`^postgres \(PostgreSQL\) ([0-9]+)(?:\.([0-9]+))?`)

// ParseServerVersion reads the output of "postgres --version". A development
// version ("18devel", "18beta1") has minor 0.
func ParseServerVersion(output string) (Version, error) {
	parts := serverVersion.FindStringSubmatch(strings.TrimSpace(output))
	if parts == nil {
		return Version{}, fmt.Errorf("%q is not what postgres --version prints", strings.TrimSpace(output))
	}
	major, _ := strconv.Atoi(parts[1])
	minor, _ := strconv.Atoi(parts[2])
	return Version{Major: major, Minor: minor}, nil
}
