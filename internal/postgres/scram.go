package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

const (
	scramIterations = 4096 // PostgreSQL's own default
	scramSaltBytes  = 16
	scramPrefix     = "SCRAM-SHA-256$"
)

// ScramVerifier is what PostgreSQL stores instead of a password (RFC 5803, in
// PostgreSQL's spelling), made with a random salt. SQL that sets a password
// carries it, so that the clear text is in no log.
func ScramVerifier(password string) (string, error) {
	salt := make([]byte, scramSaltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("choose a salt: %w", err)
	}
	return scramVerifier(password, salt, scramIterations)
}

// ScramMatches tells whether a stored verifier belongs to a password. A verifier
// of another kind, or none, does not.
func ScramMatches(verifier, password string) bool {
	rest, found := strings.CutPrefix(verifier, scramPrefix)
	if !found {
		return false
	}
	head, _, _ := strings.Cut(rest, "$")
	count, salt, found := strings.Cut(head, ":")
	iterations, err := strconv.Atoi(count)
	if !found || err != nil || iterations < 1 {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return false
	}
	expected, err := scramVerifier(password, raw, iterations)
	return err == nil && subtle.ConstantTimeCompare([]byte(expected), []byte(verifier)) == 1
}

func scramVerifier(password string, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive a verifier: %w", err)
	}
	clientKey := mac(salted, "Client Key")
	stored := sha256.Sum256(clientKey)
	return fmt.Sprintf("%s%d:%s$%s:%s", scramPrefix, iterations,
		base64.StdEncoding.EncodeToString(salt),
		base64.StdEncoding.EncodeToString(stored[:]),
		base64.StdEncoding.EncodeToString(mac(salted, "Server Key"))), nil
}

func mac(key []byte, message string) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(message))
	return hash.Sum(nil)
}
