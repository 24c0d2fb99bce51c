package instance

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/my-org/postgres-operator/internal/naming"
)

// Install copies this program into a directory, and makes a passwd file there
// that has an entry for the user id that it runs under, whichever that is:
// initdb and libpq want one.
func Install(directory string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := copyFile(self, filepath.Join(directory, filepath.Base(naming.FileManager)), 0o755); err != nil {
		return err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\n%s:x:%d:%d:PostgreSQL:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
		naming.UserSuperuser, os.Getuid(), os.Getgid())
	path := filepath.Join(directory, naming.SubPathPasswd)
	if err := os.WriteFile(path+".new", []byte(passwd), 0o644); err != nil { //nolint:gosec // everybody reads passwd
		return fmt.Errorf("write the passwd file: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the passwd file: %w", err)
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer source.Close() //nolint:errcheck // opened for reading
	target, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return fmt.Errorf("copy this program: %w", err)
	}
	if err := target.Close(); err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	return nil
}
