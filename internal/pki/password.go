package pki

import (
	"crypto/rand"
	"fmt"
)

// passwordLength gives 32 characters of 64: 192 bits.
const passwordLength = 32

// passwordAlphabet needs no quoting in a shell, a URI or a pgpass file.
const passwordAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// NewPassword makes a random password.
func NewPassword() (string, error) {
	random := make([]byte, passwordLength)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("make a password: %w", err)
	}
	for i, b := range random {
		random[i] = passwordAlphabet[int(b)%len(passwordAlphabet)] // 256 is a multiple of 64: no bias
	}
	return string(random), nil
}
