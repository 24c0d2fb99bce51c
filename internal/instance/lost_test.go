package instance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/internal/protocol"
)

func TestTheRecordsThatWereLostAreCounted(t *testing.T) {
	lost, err := countRecords(strings.NewReader(`first record is after 0/3000000, at 0/3000028, skipping over 40 bytes
rmgr: Heap        len (rec/tot):     59/    59, tx:        741, lsn: 0/03000110, prev 0/030000D8, desc: INSERT off 2 flags 0x00, blkref #0: rel 1663/16384/16385 blk 0
rmgr: Transaction len (rec/tot):     34/    34, tx:        741, lsn: 0/03000150, prev 0/03000110, desc: COMMIT 2026-12-03 14:45:00.000000 UTC
rmgr: Transaction len (rec/tot):     34/    34, tx:        742, lsn: 0/03000178, prev 0/03000150, desc: ABORT 2026-12-03 14:45:01.000000 UTC
rmgr: Transaction len (rec/tot):     54/    54, tx:        743, lsn: 0/030001A0, prev 0/03000178, desc: COMMIT_PREPARED 742: 2026-12-03 14:45:02.000000 UTC
rmgr: Heap2       len (rec/tot):     56/  8192, tx:          0, lsn: 0/030001D8, prev 0/030001A0, desc: PRUNE_ON_ACCESS snapshotConflictHorizon: 0
`))
	require.NoError(t, err)
	assert.Equal(t, protocol.Lost{Bytes: 59 + 34 + 34 + 54 + 8192, Commits: 2}, lost)
}
