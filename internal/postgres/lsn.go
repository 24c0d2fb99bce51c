package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the WAL, in bytes since its beginning.
type LSN uint64

// ParseLSN reads PostgreSQL's text form, such as "16/B374D848".
func ParseLSN(text string) (LSN, error) {
	high, low, found := strings.Cut(text, "/")
	if found {
		h, errHigh := strconv.ParseUint(high, 16, 32)
		l, errLow := strconv.ParseUint(low, 16, 32)
		if errHigh == nil && errLow == nil {
			return LSN(h<<32 | l), nil
		}
	}
	return 0, fmt.Errorf("%q is no position in the WAL, such as \"16/B374D848\"", text)
}

// String is PostgreSQL's text form.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }
