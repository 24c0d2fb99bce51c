package plan

import (
	"fmt"
	"slices"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
)

// scaleDown removes what is no member any more: first the workload, and when no
// pod of it is left, the volume. The primary is always a member.
func scaleDown(s *state.Snapshot, p *Plan) {
	for _, instance := range s.Instances {
		if slices.Contains(p.Assignment.Members, instance.Name) {
			continue
		}
		switch {
		case instance.Workload != nil:
			p.Remove = append(p.Remove, instance.Name)
			p.wait(dbv1alpha1.ReasonScalingDown, "instance %s is being removed: its pod has to end first", instance.Name)
		case instance.HasPods():
			p.wait(dbv1alpha1.ReasonScalingDown, "instance %s is being removed: its pod has to end before its volume is deleted", instance.Name)
		case instance.Claim != nil:
			p.RemoveVolume = append(p.RemoveVolume, instance.Name)
			p.wait(dbv1alpha1.ReasonScalingDown, "instance %s is being removed: its volume claim %s is being deleted", instance.Name, instance.Claim.Name)
		}
	}
}

func (p *Plan) wait(reason, format string, arguments ...any) {
	p.Waits = append(p.Waits, Wait{Reason: reason, Message: fmt.Sprintf(format, arguments...)})
}
