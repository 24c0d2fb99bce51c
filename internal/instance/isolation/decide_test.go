package isolation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/my-org/postgres-operator/internal/protocol"
)

func TestDecide(t *testing.T) {
	const lasts = 10 * time.Second
	for name, c := range map[string]struct {
		in   Input
		want Verdict
	}{
		"just renewed":                            {Input{LeaseDuration: lasts}, Continue},
		"two renewals missed":                     {Input{LeaseDuration: lasts, SinceRenewal: 6 * time.Second}, Continue},
		"the end comes near":                      {Input{LeaseDuration: lasts, SinceRenewal: 7 * time.Second}, AskPeers},
		"a renewal has just failed":               {Input{LeaseDuration: lasts, SinceRenewal: 3 * time.Second, RenewalFailed: true}, Continue},
		"renewals fail":                           {Input{LeaseDuration: lasts, SinceRenewal: 4 * time.Second, RenewalFailed: true}, AskPeers},
		"no time is left but to stop":             {Input{LeaseDuration: lasts, SinceRenewal: 8 * time.Second}, Stop},
		"long over, as after a thaw":              {Input{LeaseDuration: lasts, SinceRenewal: 2 * time.Minute}, Stop},
		"another holds it":                        {Input{LeaseDuration: lasts, OtherHolder: true}, Stop},
		"another holds it, whatever peers said":   {Input{LeaseDuration: lasts, OtherHolder: true, Granted: true}, Stop},
		"the peers have just confirmed":           {Input{LeaseDuration: lasts, SinceRenewal: time.Minute, Granted: true}, Continue},
		"their word comes to its end":             {Input{LeaseDuration: lasts, SinceRenewal: time.Minute, RenewalFailed: true, Granted: true, SinceGrant: 2 * time.Second}, AskPeers},
		"their word is over":                      {Input{LeaseDuration: lasts, SinceRenewal: time.Minute, Granted: true, SinceGrant: protocol.GrantTime - StopTime}, Stop},
		"their word is over, and it was renewed":  {Input{LeaseDuration: lasts, SinceRenewal: time.Second, Granted: true, SinceGrant: time.Minute}, Continue},
		"nobody else is there":                    {Input{LeaseDuration: lasts, SinceRenewal: time.Hour, Alone: true}, Continue},
		"a clock that jumped back changes little": {Input{LeaseDuration: lasts, SinceRenewal: -time.Second}, Continue},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Decide(c.in)) })
	}
}
